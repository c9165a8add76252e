-- Folders, uploads, replacing, renaming, moving, stars. 510_helpers.sql lists all functions and says how they lock.

CREATE FUNCTION drive_folder_insert(p_account text, p_actor text, p_parent text, p_name text, p_chain text[])
RETURNS drive_change LANGUAGE plpgsql AS $$
DECLARE f files; v_now timestamptz := clock_timestamp();
BEGIN
    INSERT INTO files (name, type, user_id, parent_id, modified, created_at, accessed_at)
    VALUES (p_name, 'folder', p_account, p_parent, v_now, v_now, v_now) RETURNING * INTO f;
    PERFORM drive_add_totals(p_chain, 0, 0, 1);
    RETURN drive_record(f, drive_book(p_account, 1, 0) + 1, 'folder.created', 'folder.create', p_actor,
                        ARRAY[coalesce(p_parent, '')], NULL, NULL, v_now);
END $$;

CREATE FUNCTION drive_folder_create(p_account text, p_actor text, p_parent text, p_name text)
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE v_chain text[]; v_holder files;
BEGIN
    IF (drive_account(p_account)).id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    IF NOT drive_is_folder(p_account, p_parent) THEN RETURN NEXT drive_refusal('PARENT_NOT_FOUND'); RETURN; END IF;
    v_holder := drive_holder(p_account, p_parent, p_name);
    IF v_holder.id IS NOT NULL THEN
        RETURN NEXT drive_name_taken(v_holder);
        RETURN;
    END IF;
    v_chain := drive_chain(p_parent);
    IF cardinality(v_chain) >= drive_max_depth() THEN
        RETURN NEXT drive_too_deep();
        RETURN;
    END IF;
    RETURN NEXT drive_folder_insert(p_account, p_actor, p_parent, p_name, v_chain);
END $$;

-- The folders of a relative path, made where they are missing. One row for each new one, or the last one as it is.
CREATE FUNCTION drive_folder_path(p_account text, p_actor text, p_parent text, p_names text[])
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE v_chain text[]; v_holder files; v_change drive_change; v_parent text := p_parent; v_name text;
BEGIN
    IF (drive_account(p_account)).id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    IF NOT drive_is_folder(p_account, p_parent) THEN RETURN NEXT drive_refusal('PARENT_NOT_FOUND'); RETURN; END IF;
    v_chain := drive_chain(p_parent);
    IF cardinality(v_chain) + cardinality(p_names) > drive_max_depth() THEN
        RETURN NEXT drive_too_deep();
        RETURN;
    END IF;
    -- What exists comes first on the path, so that a file in the way is found before anything is made.
    FOREACH v_name IN ARRAY p_names LOOP
        IF v_change.seq IS NULL THEN
            v_holder := drive_holder(p_account, v_parent, v_name);
            IF v_holder.type = 'file' OR v_holder.name <> v_name THEN
                RETURN NEXT drive_name_taken(v_holder);
                RETURN;
            END IF;
        END IF;
        IF v_change.seq IS NULL AND v_holder.id IS NOT NULL THEN
            v_parent := v_holder.id;
        ELSE
            v_change := drive_folder_insert(p_account, p_actor, v_parent, v_name, v_chain);
            v_parent := v_change.id;
            RETURN NEXT v_change;
        END IF;
        v_chain := v_parent || v_chain;
    END LOOP;
    IF v_change.seq IS NULL AND v_holder.id IS NOT NULL THEN RETURN NEXT drive_unchanged(v_holder); END IF;
END $$;

-- Each item is judged by itself: a refused one does not stop the rest.
CREATE FUNCTION drive_upload_commit_many(p_account text, p_actor text, p_parents text[], p_names text[], p_sizes bigint[],
                                         p_mimes text[], p_paths text[], p_modified bigint[], p_reservation text)
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE
    u users; f files; v_holder files; v_name text; v_over jsonb; v_parent text; v_known text; v_known_ok boolean := false;
    v_bytes bigint := 0; v_n bigint := 0; v_now timestamptz; v_new files[] := '{}';
BEGIN
    u := drive_account(p_account);
    IF u.id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    IF EXISTS (SELECT FROM dead_objects WHERE path = ANY (p_paths)) THEN RETURN NEXT drive_refusal('CONTENT_GIVEN_UP'); RETURN; END IF;
    v_now := clock_timestamp();
    FOR i IN 1 .. cardinality(p_names) LOOP
        v_parent := p_parents[i];
        IF i = 1 OR v_parent IS DISTINCT FROM v_known THEN
            v_known := v_parent;
            v_known_ok := drive_is_folder(p_account, v_parent);
        END IF;
        IF NOT v_known_ok THEN RETURN NEXT drive_refusal('PARENT_NOT_FOUND'); CONTINUE; END IF;
        v_name := p_names[i];
        v_holder := drive_holder(p_account, v_parent, v_name);
        IF v_holder.id IS NOT NULL THEN
            -- Two spellings that look alike are never two files.
            IF v_holder.name <> v_name THEN
                RETURN NEXT drive_name_taken(v_holder);
                CONTINUE;
            END IF;
            v_name := drive_free_name(p_account, v_parent, v_name, 'file');
        END IF;
        v_over := drive_over_quota(u, v_bytes + p_sizes[i], p_reservation);
        IF v_over IS NOT NULL AND p_sizes[i] > 0 THEN RETURN NEXT drive_refusal('STORAGE_LIMIT_EXCEEDED', v_over); CONTINUE; END IF;
        INSERT INTO files (name, type, size, mime_type, user_id, parent_id, path, modified, created_at, accessed_at)
        VALUES (v_name, 'file', p_sizes[i], p_mimes[i], p_account, v_parent, p_paths[i],
                coalesce(drive_time(p_modified[i]), v_now), v_now, v_now) RETURNING * INTO f;
        v_new := array_append(v_new, f);
        v_n := v_n + 1;
        v_bytes := v_bytes + p_sizes[i];
        RETURN NEXT drive_record(f, u.change_seq + v_n, 'file.uploaded', 'file.upload', p_actor,
                                 ARRAY[coalesce(v_parent, '')], NULL, NULL, v_now);
    END LOOP;
    PERFORM drive_shift_totals(v_new, 1);
    PERFORM drive_book(p_account, v_n, v_bytes, p_reservation);
END $$;

CREATE FUNCTION drive_locked(p_by locks) RETURNS drive_change LANGUAGE plpgsql AS $$
BEGIN
    RETURN drive_refusal('LOCKED', jsonb_build_object('lockedBy', jsonb_build_object('name', p_by.holder_name),
                                                      'expiresAt', drive_iso(p_by.expires_at)));
END $$;

-- What stands against replacing the file's content, judged by its row and the lock on it; NULL when nothing does.
-- A lock that has lapsed holds nobody back, its owner included: then the version alone decides. p_lock is the lock that the
-- caller believes to hold: when another one holds the file by now, even its own session's, it holds none.
CREATE FUNCTION drive_replace_refusal(f files, p_session text, p_if_match text[], p_lock text) RETURNS drive_change LANGUAGE plpgsql AS $$
DECLARE l locks; r drive_change;
BEGIN
    IF f.id IS NULL OR f.deleted_at IS NOT NULL THEN RETURN drive_refusal('NOT_FOUND'); END IF;
    IF f.type <> 'file' THEN RETURN drive_refusal('NOT_A_FILE'); END IF;
    SELECT * INTO l FROM locks WHERE file_id = f.id AND expires_at > clock_timestamp();
    IF FOUND AND (l.session_id IS DISTINCT FROM p_session OR l.lock_id <> p_lock) AND NOT drive_fault('lock_ignored') THEN
        RETURN drive_locked(l);
    END IF;
    IF p_if_match IS NOT NULL AND NOT f.version::text = ANY (p_if_match) AND NOT drive_fault('lost_update') THEN
        RETURN drive_refusal('VERSION_CONFLICT', jsonb_build_object('currentVersion', f.version::text));
    END IF;
    RETURN r;
END $$;

CREATE FUNCTION drive_replace_commit(p_account text, p_actor text, p_session text, p_file text, p_if_match text[],
                                     p_size bigint, p_mime text, p_path text, p_modified bigint, p_reservation text,
                                     p_lock text DEFAULT NULL)
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE u users; f files; r drive_change; v_over jsonb; v_old_path text; v_grown bigint; v_now timestamptz;
BEGIN
    u := drive_account(p_account);
    IF u.id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    IF EXISTS (SELECT FROM dead_objects WHERE path = p_path) THEN RETURN NEXT drive_refusal('CONTENT_GIVEN_UP'); RETURN; END IF;
    -- The file's row is locked before its lock is read: a lock can't be given out in between.
    SELECT * INTO f FROM files WHERE id = p_file FOR NO KEY UPDATE;
    IF f.user_id <> p_account THEN f := NULL; END IF;
    r := drive_replace_refusal(f, p_session, p_if_match, p_lock);
    IF r.refused IS NOT NULL THEN RETURN NEXT r; RETURN; END IF;
    v_grown := p_size - f.size;
    v_over := drive_over_quota(u, v_grown, p_reservation);
    IF v_over IS NOT NULL THEN RETURN NEXT drive_refusal('STORAGE_LIMIT_EXCEEDED', v_over); RETURN; END IF;
    v_old_path := f.path;
    v_now := clock_timestamp();
    UPDATE files SET size = p_size, mime_type = p_mime, path = p_path, version = version + 1,
                     modified = coalesce(drive_time(p_modified), v_now), accessed_at = v_now
    WHERE id = p_file RETURNING * INTO f;
    IF v_grown <> 0 THEN PERFORM drive_add_totals(drive_chain(f.parent_id), v_grown, 0, 0); END IF;
    RETURN NEXT drive_record(f, drive_book(p_account, 1, v_grown, p_reservation) + 1, 'file.updated', 'file.update', p_actor,
                             ARRAY[coalesce(f.parent_id, '')], NULL, ARRAY[v_old_path], v_now);
END $$;

CREATE FUNCTION drive_rename(p_account text, p_actor text, p_id text, p_name text)
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE f files; v_holder files; v_old text;
BEGIN
    IF (drive_account(p_account)).id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    f := drive_get(p_account, p_id);
    IF f.id IS NULL OR f.deleted_at IS NOT NULL THEN RETURN NEXT drive_refusal('NOT_FOUND'); RETURN; END IF;
    IF f.name = p_name THEN RETURN NEXT drive_unchanged(f); RETURN; END IF;
    v_holder := drive_holder(p_account, f.parent_id, p_name);
    IF v_holder.id <> p_id THEN
        RETURN NEXT drive_name_taken(v_holder);
        RETURN;
    END IF;
    v_old := f.name;
    UPDATE files SET name = p_name WHERE id = p_id RETURNING * INTO f;
    RETURN NEXT drive_record(f, drive_book(p_account, 1, 0) + 1, 'file.renamed', 'file.rename', p_actor,
                             ARRAY[coalesce(f.parent_id, '')], jsonb_build_object('oldName', v_old), NULL, clock_timestamp());
END $$;

-- NULL when each of the ids is a live (or a trashed) item of the account, else the refusal that names the first that is not.
CREATE FUNCTION drive_missing(p_account text, p_ids text[], p_trashed boolean) RETURNS drive_change LANGUAGE plpgsql STABLE AS $$
DECLARE r drive_change; v_id text;
BEGIN
    SELECT i INTO v_id FROM unnest(p_ids) AS i
    WHERE (SELECT f.user_id = p_account AND (f.deleted_at IS NOT NULL) = p_trashed FROM files f WHERE f.id = i) IS NOT TRUE LIMIT 1;
    IF FOUND THEN r := drive_refusal('NOT_FOUND', jsonb_build_object('id', v_id)); END IF;
    RETURN r;
END $$;

CREATE FUNCTION drive_distinct(p_ids text[]) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF cardinality(p_ids) < 2 THEN RETURN p_ids; END IF;
    RETURN (SELECT array_agg(i ORDER BY n) FROM (SELECT i, min(n) AS n FROM unnest(p_ids) WITH ORDINALITY AS t (i, n) GROUP BY i) AS d);
END $$;

-- What stands against putting these items below that folder (moving and copying).
CREATE FUNCTION drive_place_refusal(p_account text, p_ids text[], p_target text) RETURNS drive_change LANGUAGE plpgsql AS $$
DECLARE r drive_change; v_chain text[]; v_height integer;
BEGIN
    r := drive_missing(p_account, p_ids, false);
    IF r.refused IS NOT NULL THEN RETURN r; END IF;
    IF NOT drive_is_folder(p_account, p_target) THEN RETURN drive_refusal('PARENT_NOT_FOUND'); END IF;
    v_chain := drive_chain(p_target);
    IF v_chain && p_ids THEN RETURN drive_refusal('INTO_ITSELF'); END IF;
    SELECT max(CASE WHEN aggregate_folder_count = 0 THEN 1 ELSE drive_height(id) END) INTO v_height
    FROM files WHERE id = ANY (p_ids) AND type = 'folder';
    IF cardinality(v_chain) + v_height > drive_max_depth() THEN
        RETURN drive_too_deep();
    END IF;
    RETURN r;
END $$;

-- Totals are moved at the end, by what each item weighed at the start: chains are read when all parents stand, and the
-- sums come out right even when an item and a folder that held it move together.
CREATE FUNCTION drive_move(p_account text, p_actor text, p_ids text[], p_target text)
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE
    u users; f files; r drive_change; v_ids text[] := drive_distinct(p_ids); v_id text; v_old text; v_name text; v_n bigint := 0;
    v_now timestamptz; v_left files[] := '{}'; v_came files[] := '{}';
BEGIN
    u := drive_account(p_account);
    IF u.id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    r := drive_place_refusal(p_account, v_ids, p_target);
    IF r.refused IS NOT NULL THEN RETURN NEXT r; RETURN; END IF;
    v_now := clock_timestamp();
    FOREACH v_id IN ARRAY v_ids LOOP
        SELECT * INTO f FROM files WHERE id = v_id;
        IF f.parent_id IS NOT DISTINCT FROM p_target THEN RETURN NEXT drive_unchanged(f); CONTINUE; END IF;
        v_n := v_n + 1;
        v_old := f.parent_id;
        v_left := array_append(v_left, f);
        v_name := drive_free_name(p_account, p_target, f.name, f.type);
        UPDATE files SET parent_id = p_target, name = v_name WHERE id = v_id RETURNING * INTO f;
        v_came := array_append(v_came, f);
        RETURN NEXT drive_record(f, u.change_seq + v_n, 'file.moved', 'file.move', p_actor, ARRAY[coalesce(v_old, ''), coalesce(p_target, '')],
                                 jsonb_build_object('oldParentId', v_old), NULL, v_now);
    END LOOP;
    PERFORM drive_shift_totals(v_left, -1);
    PERFORM drive_shift_totals(v_came, 1);
    PERFORM drive_book(p_account, v_n, 0);
END $$;

-- Starring and sharing: a mark that goes on or off.
CREATE FUNCTION drive_mark(p_account text, p_actor text, p_ids text[], p_mark text, p_on boolean)
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE u users; f files; r drive_change; v_ids text[] := drive_distinct(p_ids); v_id text; v_n bigint := 0; v_now timestamptz;
BEGIN
    u := drive_account(p_account);
    IF u.id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    r := drive_missing(p_account, v_ids, false);
    IF r.refused IS NOT NULL THEN RETURN NEXT r; RETURN; END IF;
    v_now := clock_timestamp();
    FOREACH v_id IN ARRAY v_ids LOOP
        IF p_mark = 'star' THEN
            UPDATE files SET starred = p_on WHERE id = v_id AND starred <> p_on RETURNING * INTO f;
        ELSE
            UPDATE files SET shared = p_on WHERE id = v_id AND shared <> p_on RETURNING * INTO f;
        END IF;
        IF NOT FOUND THEN
            SELECT * INTO f FROM files WHERE id = v_id;
            RETURN NEXT drive_unchanged(f);
            CONTINUE;
        END IF;
        v_n := v_n + 1;
        RETURN NEXT drive_record(f, u.change_seq + v_n, CASE p_mark WHEN 'star' THEN 'file.starred' ELSE 'file.shared' END,
                                 CASE WHEN p_on THEN 'file.' ELSE 'file.un' END || p_mark, p_actor,
                                 ARRAY[coalesce(f.parent_id, '')], NULL, NULL, v_now);
    END LOOP;
    PERFORM drive_book(p_account, v_n, 0);
END $$;
