-- Every write to the drive is one call of one of these functions: one statement, one transaction, one round trip.
--
--   drive_folder_create(account, actor, parent, name)                                    folder.created
--   drive_folder_path(account, actor, parent, names[])                                   folder.created each new; last row: the deepest
--   drive_upload_commit_many(account, actor, parents[], names[], sizes[], mimes[], paths[], modified_us[], reservation)
--                                                                                        file.uploaded; one row an item, in order
--   drive_replace_commit(account, actor, session, file, if_match[], size, mime, path, modified_us, reservation, lock_id)
--                                                                                        file.updated; keys: the old object
--   drive_rename(account, actor, id, name)                                               file.renamed
--   drive_move(account, actor, ids[], target)                                            file.moved each
--   drive_mark(account, actor, ids[], 'star' or 'share', on)                             file.starred, file.shared each changed one
--   drive_trash(account, actor, ids[], max_items)                                        file.deleted each
--   drive_restore(account, actor, ids[], max_items)                                      file.restored each
--   drive_purge(account, actor, ids[] or NULL: all of the trash)                         file.permanently_deleted each; keys: its objects
--   drive_copy_begin(account, actor, job, ids[], target)                  fills copy_items and reserves storage
--   drive_copy_refresh(job, ord) -> path now, NULL when the source is gone
--   drive_copy_commit(account, actor, job)                                               file.copied each top item; sets the job's result
--   drive_reserve(account, bytes, purpose, ttl_s) · drive_release(reservation)
--   drive_lock(account, actor, session, holder_name, file, lock_id, ttl_s) · drive_unlock(account, session, file, lock_id)
--   drive_touch(ids[], at_us[]) · drive_audit_downloads(users[], accounts[], files[], at_us[])     batched, never wait for a write
--   drive_give_up_objects(account, paths[]) -> those that no row names, and none will
--   drive_housekeeping(changes_kept) · reconcile_folder_aggregates(user_id)
-- Reading only, before a body is taken:
--   drive_upload_check(account, parent, bytes) · drive_replace_check(account, session, file, if_match[], bytes, lock_id)
--
-- account: the owner's id (COALESCE(parent_user_id, id)); actor: the login's id; parent, target: NULL is the top level.
-- Names come checked (path.h) and ids unchecked: another account's id is as good as missing. modified_us: microseconds
-- since 1970, NULL is now. if_match: the strong tags of If-Match; NULL: no condition.
--
-- A refusal is a value, not an error: the row has refused (a code that meta/refusal.c maps to status and sentence) and detail
-- (a JSON object for the answer). It is always decided before anything is written. An exception would say the same, but
-- fills Postgres' log with errors of which each stands for a server that works as designed.
--
-- The order of locks, the same everywhere: the owner's row first (FOR NO KEY UPDATE: sessions that refer to it need not
-- wait), then its job, then rows of files, then rows of locks. That makes writes to an account one at a time, its storage
-- use exact and its change numbers gapless; nobody takes a name between the look and the write. The functions that do not
-- take the owner's row wait for one row of files at most (lock, unlock), or take many rows and skip those that another one
-- holds (touch, the ends of sessions, housekeeping). All of it rests on READ COMMITTED, Postgres' default: what is read
-- after a lock was waited for is what its last holder left.
--
-- Plans are made when the tables are empty and must still fit at 100,000 rows: rows are looked up in ways that only one
-- index serves (so live is told by trash_root, which no partial index names), and 599_plans.sql takes away what would
-- only suit a small table. Helpers that look at tables are plpgsql: plans of SQL functions are made anew each call.

CREATE TYPE drive_change AS (
    refused     text,        -- NULL: done
    detail      text,
    seq         bigint,      -- NULL: nothing changed (same name, already there): nothing to publish
    event       text,
    data        text,        -- the event's data, JSON
    keys        text[],      -- objects that nothing refers to any more: delete them after the commit
    id          text,
    name        text,
    type        text,
    size        bigint,
    mime_type   text,
    parent_id   text,
    starred     boolean,
    shared      boolean,
    modified    bigint,      -- microseconds since 1970
    accessed_at bigint,
    version     bigint,
    path        text
);

CREATE FUNCTION drive_us(p timestamptz) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT (extract(epoch FROM p) * 1000000)::bigint
$$;

-- Exact to the microsecond until the year 2255.
CREATE FUNCTION drive_time(p_us bigint) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT timestamptz 'epoch' + p_us * interval '1 microsecond'
$$;

CREATE FUNCTION drive_iso(p timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT to_char(p AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

CREATE FUNCTION drive_refusal(p_code text, p_detail jsonb DEFAULT NULL) RETURNS drive_change LANGUAGE plpgsql AS $$
DECLARE r drive_change;
BEGIN
    r.refused := p_code;
    r.detail := p_detail::text;
    RETURN r;
END $$;

CREATE FUNCTION drive_name_taken(p_by files) RETURNS drive_change LANGUAGE plpgsql AS $$
BEGIN
    RETURN drive_refusal('NAME_TAKEN', jsonb_build_object('id', p_by.id, 'name', p_by.name, 'type', p_by.type));
END $$;

-- A row as it is, nothing changed.
CREATE FUNCTION drive_unchanged(f files) RETURNS drive_change LANGUAGE plpgsql AS $$
DECLARE r drive_change;
BEGIN
    r.id := f.id;               r.name := f.name;           r.type := f.type;           r.size := f.size;
    r.mime_type := f.mime_type; r.parent_id := f.parent_id; r.starred := f.starred;     r.shared := f.shared;
    r.version := f.version;     r.path := f.path;
    r.modified := drive_us(f.modified);
    r.accessed_at := drive_us(f.accessed_at);
    RETURN r;
END $$;

-- Notes one change of one item in the feed and in the audit log.
CREATE FUNCTION drive_record(f files, p_seq bigint, p_event text, p_action text, p_actor text, p_folders text[],
                             p_extra jsonb, p_keys text[], p_at timestamptz) RETURNS drive_change LANGUAGE plpgsql AS $$
DECLARE r drive_change; d jsonb;
BEGIN
    r := drive_unchanged(f);
    d := jsonb_build_object('id', f.id, 'parentId', f.parent_id, 'name', f.name, 'type', f.type, 'size', f.size,
                            'mimeType', f.mime_type, 'starred', f.starred, 'shared', f.shared,
                            'modified', drive_iso(f.modified), 'version', f.version::text, 'userId', p_actor);
    IF p_extra IS NOT NULL THEN d := d || p_extra; END IF;
    INSERT INTO changes (account_id, seq, type, folders, data, at) VALUES (f.user_id, p_seq, p_event, p_folders, d, p_at);
    INSERT INTO audit_log (user_id, account_owner_id, actor_role, action, resource_type, resource_id, metadata, created_at)
    VALUES (p_actor, f.user_id, CASE WHEN p_actor = f.user_id THEN 'owner' ELSE 'sub_user' END, p_action, f.type, f.id,
            jsonb_build_object('name', f.name, 'size', f.size) || coalesce(p_extra, '{}'), p_at);
    r.seq := p_seq;
    r.event := p_event;
    r.data := d::text;
    r.keys := p_keys;
    RETURN r;
END $$;

-- Takes the account: the owner's row, locked until the end of the transaction. NULL id: no such account.
CREATE FUNCTION drive_account(p_account text) RETURNS users LANGUAGE plpgsql AS $$
DECLARE u users;
BEGIN
    SELECT * INTO u FROM users WHERE id = p_account AND parent_user_id IS NULL FOR NO KEY UPDATE;
    RETURN u;
END $$;

-- Books n change numbers, storage and a used-up reservation on the owner's row. Returns the last number before them.
CREATE FUNCTION drive_book(p_account text, p_changes bigint, p_bytes bigint, p_reservation text DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE v_seq bigint; v_reserved bigint := 0;
BEGIN
    IF p_reservation IS NOT NULL THEN
        DELETE FROM storage_reservations WHERE id = p_reservation AND user_id = p_account RETURNING bytes INTO v_reserved;
    END IF;
    IF drive_fault('slow_commit') THEN PERFORM pg_sleep(1); END IF;
    IF p_bytes <> 0 AND drive_fault('storage_drift') THEN p_bytes := 0; END IF;
    UPDATE users SET change_seq = change_seq + p_changes, storage_used = storage_used + p_bytes,
                     storage_reserved = storage_reserved - coalesce(v_reserved, 0)
    WHERE id = p_account RETURNING change_seq - p_changes INTO v_seq;
    RETURN v_seq;
END $$;

-- NULL when p_bytes more fit the account, beside what others have reserved; else the refusal's detail.
CREATE FUNCTION drive_over_quota(u users, p_bytes bigint, p_reservation text DEFAULT NULL) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE v_free bigint; v_own bigint := 0;
BEGIN
    IF u.storage_limit IS NULL OR p_bytes <= 0 OR drive_fault('quota_overrun') THEN RETURN NULL; END IF;
    IF p_reservation IS NOT NULL THEN
        SELECT bytes INTO v_own FROM storage_reservations WHERE id = p_reservation AND user_id = u.id;
    END IF;
    v_free := u.storage_limit - u.storage_used - u.storage_reserved + coalesce(v_own, 0);
    IF p_bytes <= v_free THEN RETURN NULL; END IF;
    RETURN jsonb_build_object('required', p_bytes, 'available', greatest(v_free, 0));
END $$;

-- Nesting stops here; a tree this deep can still be listed, moved, copied and deleted by recursive queries.
CREATE FUNCTION drive_max_depth() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 100';

CREATE FUNCTION drive_too_deep() RETURNS drive_change LANGUAGE plpgsql AS $$
BEGIN
    RETURN drive_refusal('TOO_DEEP', jsonb_build_object('limit', drive_max_depth()));
END $$;

-- The folder itself and those above it, nearest first; {} for the top level. Bounded, so that a cycle made by hand ends.
CREATE FUNCTION drive_chain(p_folder text) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE v_chain text[] := '{}'; v_id text := p_folder; v_up text;
BEGIN
    WHILE v_id IS NOT NULL AND cardinality(v_chain) < 1000 LOOP
        SELECT parent_id INTO v_up FROM files WHERE id = v_id;
        EXIT WHEN NOT FOUND;
        v_chain := v_chain || v_id;
        v_id := v_up;
    END LOOP;
    RETURN v_chain;
END $$;

CREATE FUNCTION drive_add_totals(p_chain text[], p_bytes bigint, p_files bigint, p_folders bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(p_chain) = 0 OR drive_fault('aggregate_drift') THEN RETURN; END IF;
    UPDATE files SET aggregate_size = aggregate_size + p_bytes, aggregate_file_count = aggregate_file_count + p_files,
                     aggregate_folder_count = aggregate_folder_count + p_folders
    WHERE id = ANY (p_chain);
END $$;

-- Adds what these items weigh to the totals of the folders above them, or with sign -1 takes it off. The rows say where
-- the items are and what they weigh, so one that was read before it moved speaks of the folders that it left. Once a
-- folder for all of them: hundreds of updates of one row in one transaction are what makes bulk writes slow.
CREATE FUNCTION drive_shift_totals(p_items files[], p_sign integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE w record;
BEGIN
    FOR w IN SELECT parent_id AS folder, p_sign * sum(coalesce(size, aggregate_size))::bigint AS bytes,
                    p_sign * sum(CASE type WHEN 'file' THEN 1 ELSE aggregate_file_count END)::bigint AS files,
                    p_sign * sum(CASE type WHEN 'file' THEN 0 ELSE aggregate_folder_count + 1 END)::bigint AS folders
             FROM unnest(p_items) GROUP BY parent_id LOOP
        PERFORM drive_add_totals(drive_chain(w.folder), w.bytes, w.files, w.folders);
    END LOOP;
END $$;

-- The items and everything below them, live only or all; UNION, so that a cycle made by hand ends. level 0: the items.
CREATE FUNCTION drive_subtree(p_ids text[], p_live boolean) RETURNS SETOF files LANGUAGE sql STABLE AS $$
    WITH RECURSIVE t AS (
        SELECT id, type FROM files WHERE id = ANY (p_ids)
        UNION
        SELECT c.id, c.type FROM t JOIN files c ON c.parent_id = t.id
        WHERE t.type = 'folder' AND (NOT p_live OR c.trash_root IS NULL)
    )
    SELECT f.* FROM t JOIN files f ON f.id = t.id
$$;

-- Folders on the longest way down from a folder, itself included.
CREATE FUNCTION drive_height(p_folder text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (WITH RECURSIVE t AS (
        SELECT p_folder AS id, 1 AS level
        UNION ALL
        SELECT c.id, t.level + 1 FROM t JOIN files c ON c.parent_id = t.id WHERE c.type = 'folder' AND t.level <= drive_max_depth()
    )
    SELECT max(level) FROM t);
END $$;

-- The account's item of that id; all NULL when there is none. Looked up by the id alone, so that only one index fits.
CREATE FUNCTION drive_get(p_account text, p_id text) RETURNS files LANGUAGE plpgsql STABLE AS $$
DECLARE f files;
BEGIN
    SELECT * INTO f FROM files WHERE id = p_id;
    IF f.user_id <> p_account THEN RETURN NULL; END IF;
    RETURN f;
END $$;

CREATE FUNCTION drive_is_folder(p_account text, p_folder text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE f files;
BEGIN
    IF p_folder IS NULL THEN RETURN true; END IF;
    SELECT * INTO f FROM files WHERE id = p_folder;
    RETURN f.id IS NOT NULL AND f.user_id = p_account AND f.type = 'folder' AND f.deleted_at IS NULL;
END $$;

-- The live item of that name (in NFC) in a folder.
CREATE FUNCTION drive_holder(p_account text, p_parent text, p_name text) RETURNS files LANGUAGE plpgsql STABLE AS $$
DECLARE f files;
BEGIN
    SELECT * INTO f FROM files
    WHERE drive_name_key(user_id, parent_id, name, deleted_at) = drive_name_key(p_account, p_parent, p_name, NULL);
    RETURN f;
END $$;

-- "report.pdf", 1 -> "report (1).pdf", a folder's number at the end; the stem is cut so that 255 bytes hold all of it.
CREATE FUNCTION drive_numbered(p_name text, p_number bigint, p_type text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE v_ext text := ''; v_stem text := p_name; v_tail text;
BEGIN
    IF p_type = 'file' AND p_name ~ '^.+\.[^.]+$' THEN
        v_ext := substring(p_name FROM '\.[^.]+$');
        IF octet_length(v_ext) > 64 THEN v_ext := ''; END IF;
        v_stem := left(p_name, length(p_name) - length(v_ext));
    END IF;
    v_tail := ' (' || p_number || ')' || v_ext;
    WHILE octet_length(v_stem) + octet_length(v_tail) > 255 LOOP v_stem := left(v_stem, -1); END LOOP;
    RETURN rtrim(v_stem) || v_tail;
END $$;

-- The name itself when it is free, else numbered. The first 16 numbers are tried in turn; beyond them a gap is found by
-- doubling and halving, so that the 10,000th upload of one name costs no more than 40 look-ups.
CREATE FUNCTION drive_free_name(p_account text, p_parent text, p_name text, p_type text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE v_taken bigint := 16; v_free bigint := 32; v_mid bigint; v_name text;
BEGIN
    IF (drive_holder(p_account, p_parent, p_name)).id IS NULL THEN RETURN p_name; END IF;
    FOR i IN 1 .. v_taken LOOP
        v_name := drive_numbered(p_name, i, p_type);
        IF (drive_holder(p_account, p_parent, v_name)).id IS NULL THEN RETURN v_name; END IF;
    END LOOP;
    WHILE (drive_holder(p_account, p_parent, drive_numbered(p_name, v_free, p_type))).id IS NOT NULL LOOP
        v_taken := v_free;
        v_free := v_free * 2;
    END LOOP;
    WHILE v_free - v_taken > 1 LOOP
        v_mid := (v_taken + v_free) / 2;
        IF (drive_holder(p_account, p_parent, drive_numbered(p_name, v_mid, p_type))).id IS NULL THEN
            v_free := v_mid;
        ELSE
            v_taken := v_mid;
        END IF;
    END LOOP;
    RETURN drive_numbered(p_name, v_free, p_type);
END $$;
