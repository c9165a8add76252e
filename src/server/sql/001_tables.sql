-- The reference drive server's tables. The names and columns of TMA Cloud's documented tables are kept, so that one set
-- of checks reads both; the rest is ours. Files below 500 are migrations: applied once, in order, and never edited
-- after a release. Files from 500 on hold functions only and are applied again whenever their text changes.
--
-- There are no triggers of ours: row-level ones make bulk writes 15 times slower. Every write is one function of
-- 510_*.sql or 520_*.sql, which keeps totals, storage use, change feed and audit log in its own transaction.

-- 16 characters of the alphabet without 0 O I l, from 244 random bits.
CREATE FUNCTION drive_new_id() RETURNS text LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT left(translate(encode(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()), 'base64'), '0OIl+/=', ''), 16)
$$;

-- A name as searching sees it: one composition, one case, in every script.
CREATE FUNCTION drive_fold(p_name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT lower(normalize(p_name, NFC) COLLATE "und-x-icu") COLLATE "C"
$$;

-- What must be unique among live items: folder and name, the name in NFC; NULL in the trash. One expression and an index
-- without a condition, because a plan that is made while the table is empty takes any index that fits as good as another
-- one, and keeps it.
CREATE FUNCTION drive_name_key(p_account text, p_parent text, p_name text, p_deleted_at timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_deleted_at IS NULL THEN coalesce(p_parent, p_account) || '/' || normalize(p_name, NFC) COLLATE "C" END
$$;

CREATE TABLE app_settings (
    id              integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    first_user_id   text,                       -- the administrator
    epoch           text NOT NULL DEFAULT drive_new_id(),   -- first half of every cursor: another database, another epoch
    signup_enabled  boolean NOT NULL DEFAULT true,
    desktop_only    boolean NOT NULL DEFAULT false,
    storage_config  jsonb,                      -- the bucket, its keys sealed
    storage_version integer NOT NULL DEFAULT 0,
    object_format   text NOT NULL DEFAULT 'dseal1'          -- how file bodies lie in the bucket (seal.h)
);
INSERT INTO app_settings DEFAULT VALUES;

CREATE TABLE users (
    id               text PRIMARY KEY DEFAULT drive_new_id(),
    email            text NOT NULL,
    password         text NOT NULL,
    name             text NOT NULL DEFAULT '',
    parent_user_id   text REFERENCES users (id) ON DELETE CASCADE CHECK (parent_user_id <> id),
    permissions      text[] NOT NULL DEFAULT '{}',
    storage_limit    bigint CHECK (storage_limit >= 0),
    storage_used     bigint NOT NULL DEFAULT 0,
    storage_reserved bigint NOT NULL DEFAULT 0,
    change_seq       bigint NOT NULL DEFAULT 0,  -- the account's last change number
    created_at       timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);                        -- an owner's row changes with every write: room for HOT updates
CREATE UNIQUE INDEX users_email ON users (lower(email));
CREATE INDEX users_parent ON users (parent_user_id) WHERE parent_user_id IS NOT NULL;

CREATE TABLE sessions (
    id           text PRIMARY KEY DEFAULT drive_new_id(),
    user_id      text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    ip           text,
    user_agent   text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    revoked_at   timestamptz
);
CREATE INDEX sessions_user ON sessions (user_id);

CREATE TABLE client_heartbeats (
    user_id      text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    session_id   text NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    app_version  text,
    platform     text,
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, session_id)
);

-- A live item has deleted_at NULL. trash_root names the item whose trashing took this one along (itself at the top), so
-- that a restored folder brings back what went with it and nothing else. A trashed item keeps its parent: it still
-- counts in its ancestors' totals and in the storage use.
CREATE TABLE files (
    id                     text PRIMARY KEY DEFAULT drive_new_id(),
    name                   text COLLATE "C" NOT NULL,
    type                   text COLLATE "C" NOT NULL CHECK (type IN ('file', 'folder')),
    size                   bigint CHECK (size >= 0),
    mime_type              text,
    user_id                text NOT NULL REFERENCES users (id),
    parent_id              text REFERENCES files (id),
    path                   text,
    starred                boolean NOT NULL DEFAULT false,
    shared                 boolean NOT NULL DEFAULT false,
    deleted_at             timestamptz,
    trash_root             text,
    version                bigint NOT NULL DEFAULT 1,
    modified               timestamptz NOT NULL DEFAULT now(),
    created_at             timestamptz NOT NULL DEFAULT now(),
    accessed_at            timestamptz NOT NULL DEFAULT now(),
    aggregate_size         bigint NOT NULL DEFAULT 0,
    aggregate_file_count   bigint NOT NULL DEFAULT 0,
    aggregate_folder_count bigint NOT NULL DEFAULT 0,
    CONSTRAINT files_parent_not_self CHECK (parent_id <> id),
    CONSTRAINT files_file_has_content CHECK ((type = 'file') = (size IS NOT NULL) AND (type = 'file') = (path IS NOT NULL)),
    CONSTRAINT files_trash_root CHECK ((deleted_at IS NULL) = (trash_root IS NULL))
) WITH (fillfactor = 85);

CREATE INDEX files_parent ON files (parent_id);
CREATE UNIQUE INDEX files_name_once ON files (drive_name_key(user_id, parent_id, name, deleted_at));
-- Listings: folders first whatever the order, so type is fixed and each of the two runs reads one index either way round.
CREATE INDEX files_by_name ON files (user_id, coalesce(parent_id, ''), type, name, id) WHERE deleted_at IS NULL;
CREATE INDEX files_by_size ON files (user_id, coalesce(parent_id, ''), type, coalesce(size, 0), id) WHERE deleted_at IS NULL;
CREATE INDEX files_by_modified ON files (user_id, coalesce(parent_id, ''), type, modified, id) WHERE deleted_at IS NULL;
CREATE INDEX files_by_accessed ON files (user_id, coalesce(parent_id, ''), type, accessed_at, id) WHERE deleted_at IS NULL;
CREATE INDEX files_recent ON files (user_id, accessed_at, id) WHERE type = 'file' AND deleted_at IS NULL;
CREATE INDEX files_trash ON files (user_id, deleted_at, id) WHERE trash_root = id;
CREATE INDEX files_starred ON files (user_id, name, id) WHERE starred AND deleted_at IS NULL;
CREATE INDEX files_shared ON files (user_id, name, id) WHERE shared AND deleted_at IS NULL;
CREATE UNIQUE INDEX files_object ON files (path) WHERE path IS NOT NULL;
-- For searches that no trigram helps: names in their order with what is compared beside them, so that neither the rows
-- nor the folding of thousands of names is needed.
CREATE INDEX files_names ON files (user_id, name, id, drive_fold(name)) WHERE deleted_at IS NULL;

-- Searching is literal with or without this index; without the extensions it reads the account's names.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE EXTENSION IF NOT EXISTS btree_gin;
    CREATE INDEX files_words ON files USING gin (user_id, drive_fold(name) gin_trgm_ops) WHERE deleted_at IS NULL;
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported THEN
    RAISE NOTICE 'no pg_trgm and btree_gin: searching reads all rows of an account';
END $$;

CREATE TABLE storage_reservations (
    id         text PRIMARY KEY DEFAULT drive_new_id(),
    user_id    text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    bytes      bigint NOT NULL CHECK (bytes >= 0),
    purpose    text NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX storage_reservations_expiry ON storage_reservations (expires_at);

CREATE TABLE locks (
    file_id     text PRIMARY KEY,
    lock_id     text NOT NULL,
    account_id  text NOT NULL,
    user_id     text NOT NULL,
    session_id  text NOT NULL,
    holder_name text NOT NULL,
    locked_at   timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL
);

-- The change feed and the replay of events: one row a changed item, numbered without gaps within the account.
-- folders: those whose listing changed; '' is the account's top level.
CREATE TABLE changes (
    account_id text NOT NULL,
    seq        bigint NOT NULL,
    type       text NOT NULL,
    folders    text[] NOT NULL,
    data       jsonb NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (account_id, seq)
);

-- The servers on this database; each says every few seconds that it lives (presence.c).
CREATE TABLE servers (
    id      text PRIMARY KEY,
    host    text NOT NULL,
    pid     bigint NOT NULL,
    born    bigint NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE jobs (
    id          text PRIMARY KEY DEFAULT drive_new_id(),
    account_id  text NOT NULL,
    user_id     text NOT NULL,
    kind        text NOT NULL,
    status      text NOT NULL DEFAULT 'created' CHECK (status IN ('created', 'active', 'completed', 'failed')),
    args        jsonb NOT NULL DEFAULT '{}',
    result      jsonb,
    error       text,
    attempts    integer NOT NULL DEFAULT 0,
    done        bigint NOT NULL DEFAULT 0,       -- of total: how far it is, for whoever asks
    total       bigint NOT NULL DEFAULT 0,
    keys        text[],                          -- objects that are still to be deleted: the rows are gone already
    server_id   text,                            -- who is at it, as long as that server lives
    not_before  timestamptz,                     -- a step failed: not again before then
    created_at  timestamptz NOT NULL DEFAULT now(),
    started_at  timestamptz,
    finished_at timestamptz
);
CREATE INDEX jobs_open ON jobs (created_at, id) WHERE status IN ('created', 'active');
CREATE INDEX jobs_ended ON jobs (finished_at) WHERE finished_at IS NOT NULL;

-- What a copy is about to add: its rows stand here until every object is copied, then move to files in one statement.
-- above: the ids of the item's new ancestors within the copy.
CREATE TABLE copy_items (
    job_id      text NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    ord         integer NOT NULL,
    source_id   text NOT NULL,
    id          text NOT NULL,
    parent_id   text,                            -- NULL at the top of the copy
    above       text[] NOT NULL,
    type        text NOT NULL,
    name        text NOT NULL,
    size        bigint,
    mime_type   text,
    modified    timestamptz NOT NULL,
    source_path text,
    path        text,
    copied      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (job_id, ord)
);
CREATE INDEX copy_items_object ON copy_items (path) WHERE path IS NOT NULL;

CREATE TABLE audit_log (
    id               bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    user_id          text,
    account_owner_id text,
    actor_role       text,
    action           text NOT NULL,
    resource_type    text,
    resource_id      text,
    status           text NOT NULL DEFAULT 'success',
    metadata         jsonb,
    created_at       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_log_account ON audit_log (account_owner_id, created_at);
