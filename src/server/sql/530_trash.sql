-- Trash, restore, deleting for good. A trashed item keeps its parent and its weight in totals and storage use.

-- Items that a call would touch: themselves and all below.
CREATE FUNCTION drive_weight(p_ids text[]) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT coalesce(sum(1 + aggregate_file_count + aggregate_folder_count), 0)::bigint FROM files WHERE id = ANY (p_ids));
END $$;

-- max_items NULL: no bound. Beyond it TOO_MANY is said, and a job does the same call without the bound.
-- The feed names every folder that went along: an app that has one of them open must notice.
CREATE FUNCTION drive_trash(p_account text, p_actor text, p_ids text[], p_max_items bigint)
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE
    u users; f files; r drive_change; v_ids text[] := drive_distinct(p_ids); v_id text; v_n bigint := 0; v_now timestamptz;
    v_all text[]; v_folders text[];
BEGIN
    u := drive_account(p_account);
    IF u.id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    r := drive_missing(p_account, v_ids, false);
    IF r.refused IS NOT NULL THEN RETURN NEXT r; RETURN; END IF;
    IF drive_weight(v_ids) > p_max_items THEN RETURN NEXT drive_refusal('TOO_MANY'); RETURN; END IF;
    v_now := clock_timestamp();
    FOREACH v_id IN ARRAY v_ids LOOP
        SELECT * INTO f FROM files WHERE id = v_id;
        CONTINUE WHEN f.deleted_at IS NOT NULL;  -- went with a folder of the same call
        IF f.type = 'file' THEN
            v_all := ARRAY[v_id];
            v_folders := '{}';
        ELSE
            SELECT array_agg(id), array_agg(id) FILTER (WHERE type = 'folder') INTO v_all, v_folders FROM drive_subtree(ARRAY[v_id], true);
        END IF;
        UPDATE files SET deleted_at = v_now, trash_root = v_id WHERE id = ANY (v_all) AND NOT drive_fault('trash_leak');
        f.deleted_at := v_now;
        v_n := v_n + 1;
        RETURN NEXT drive_record(f, u.change_seq + v_n, 'file.deleted', 'file.delete', p_actor, ARRAY[coalesce(f.parent_id, '')] || v_folders,
                                 NULL, NULL, v_now);
    END LOOP;
    PERFORM drive_book(p_account, v_n, 0);
END $$;

-- Back to where it was, or to the top level when its folder is itself in the trash. Only what went to the trash with the
-- item comes back with it. An account above its limit (it was lowered) gets nothing back.
CREATE FUNCTION drive_restore(p_account text, p_actor text, p_ids text[], p_max_items bigint)
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE
    u users; f files; r drive_change; v_ids text[] := drive_distinct(p_ids); v_id text; v_n bigint := 0; v_now timestamptz;
    v_all text[]; v_folders text[]; v_parent text; v_was files; v_name text; v_bytes bigint;
BEGIN
    u := drive_account(p_account);
    IF u.id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    r := drive_missing(p_account, v_ids, true);
    IF r.refused IS NOT NULL THEN RETURN NEXT r; RETURN; END IF;
    IF drive_weight(v_ids) > p_max_items THEN RETURN NEXT drive_refusal('TOO_MANY'); RETURN; END IF;
    IF u.storage_used + u.storage_reserved > u.storage_limit THEN
        SELECT sum(coalesce(size, aggregate_size)) INTO v_bytes FROM files WHERE id = ANY (v_ids);
        RETURN NEXT drive_refusal('STORAGE_LIMIT_EXCEEDED', jsonb_build_object('required', v_bytes, 'available', 0));
        RETURN;
    END IF;
    v_now := clock_timestamp();
    FOREACH v_id IN ARRAY v_ids LOOP
        SELECT * INTO v_was FROM files WHERE id = v_id;
        CONTINUE WHEN v_was.deleted_at IS NULL;  -- came back with a folder of the same call
        WITH RECURSIVE t AS (
            SELECT id, type FROM files WHERE id = v_id
            UNION
            SELECT c.id, c.type FROM t JOIN files c ON c.parent_id = t.id WHERE t.type = 'folder' AND c.trash_root = v_was.trash_root
        )
        SELECT array_agg(id), coalesce(array_agg(id) FILTER (WHERE type = 'folder'), '{}') INTO v_all, v_folders FROM t;
        v_parent := CASE WHEN drive_is_folder(p_account, v_was.parent_id) THEN v_was.parent_id END;
        v_name := drive_free_name(p_account, v_parent, v_was.name, v_was.type);
        UPDATE files SET deleted_at = NULL, trash_root = NULL WHERE id = ANY (v_all) AND id <> v_id;
        UPDATE files SET deleted_at = NULL, trash_root = NULL, parent_id = v_parent, name = v_name WHERE id = v_id RETURNING * INTO f;
        IF v_parent IS DISTINCT FROM v_was.parent_id THEN PERFORM drive_shift_totals(ARRAY[v_was], -1); END IF;
        v_n := v_n + 1;
        RETURN NEXT drive_record(f, u.change_seq + v_n, 'file.restored', 'file.restore', p_actor, ARRAY[coalesce(v_parent, '')] || v_folders,
                                 CASE WHEN v_parent IS DISTINCT FROM v_was.parent_id THEN jsonb_build_object('oldParentId', v_was.parent_id) END,
                                 NULL, v_now);
    END LOOP;
    PERFORM drive_book(p_account, v_n, 0);
END $$;

-- Rows and totals go at once; the objects' keys come back and are deleted after the commit. ids NULL: all of the trash.
CREATE FUNCTION drive_purge(p_account text, p_actor text, p_ids text[])
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE
    u users; f files; r drive_change; v_ids text[]; v_id text; v_n bigint := 0; v_now timestamptz; v_all text[]; v_keys text[];
    v_size bigint; v_total bigint := 0; v_left files[] := '{}';
BEGIN
    u := drive_account(p_account);
    IF u.id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    IF p_ids IS NULL THEN
        SELECT coalesce(array_agg(id ORDER BY deleted_at, id), '{}') INTO v_ids FROM files WHERE user_id = p_account AND trash_root = id;
    ELSE
        v_ids := drive_distinct(p_ids);
    END IF;
    r := drive_missing(p_account, v_ids, true);
    IF r.refused IS NOT NULL THEN RETURN NEXT r; RETURN; END IF;
    v_now := clock_timestamp();
    FOREACH v_id IN ARRAY v_ids LOOP
        SELECT * INTO f FROM files WHERE id = v_id;
        CONTINUE WHEN NOT FOUND;                 -- went with a folder of the same call
        SELECT array_agg(id), array_agg(path) FILTER (WHERE path IS NOT NULL), coalesce(sum(size), 0)::bigint
        INTO v_all, v_keys, v_size FROM drive_subtree(ARRAY[v_id], false);
        DELETE FROM files WHERE id = ANY (v_all);
        DELETE FROM locks WHERE file_id = ANY (v_all);   -- after the files, as drive_lock takes them in this order
        v_total := v_total + v_size;
        v_left := array_append(v_left, f);
        v_n := v_n + 1;
        RETURN NEXT drive_record(f, u.change_seq + v_n, 'file.permanently_deleted', 'file.delete.permanent', p_actor, '{}',
                                 '{"permanent": true}', v_keys, v_now);
    END LOOP;
    PERFORM drive_shift_totals(v_left, -1); -- as in drive_move: an item and a folder that held it may go together
    PERFORM drive_book(p_account, v_n, -v_total);
END $$;

-- How many folders had wrong totals; they are right afterwards. Levels are bounded, so that a cycle made by hand ends.
CREATE FUNCTION reconcile_folder_aggregates(p_user_id text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE v_wrong integer;
BEGIN
    PERFORM drive_account(p_user_id);
    WITH RECURSIVE direct AS (
        SELECT parent_id AS folder, coalesce(sum(size), 0) AS bytes, count(*) FILTER (WHERE type = 'file') AS files,
               count(*) FILTER (WHERE type = 'folder') AS folders
        FROM files WHERE user_id = p_user_id AND parent_id IS NOT NULL GROUP BY parent_id
    ), above AS (
        SELECT folder, folder AS top, 1 AS level FROM direct
        UNION ALL
        SELECT a.folder, f.parent_id, a.level + 1 FROM above a JOIN files f ON f.id = a.top
        WHERE f.parent_id IS NOT NULL AND a.level <= drive_max_depth()
    ), total AS (
        SELECT a.top, sum(d.bytes)::bigint AS bytes, sum(d.files)::bigint AS files, sum(d.folders)::bigint AS folders
        FROM above a JOIN direct d USING (folder) GROUP BY a.top
    ), truth AS (
        SELECT f.id, coalesce(t.bytes, 0) AS bytes, coalesce(t.files, 0) AS files, coalesce(t.folders, 0) AS folders
        FROM files f LEFT JOIN total t ON t.top = f.id WHERE f.user_id = p_user_id AND f.type = 'folder'
    )
    UPDATE files f SET aggregate_size = t.bytes, aggregate_file_count = t.files, aggregate_folder_count = t.folders
    FROM truth t WHERE f.id = t.id
        AND (f.aggregate_size, f.aggregate_file_count, f.aggregate_folder_count) IS DISTINCT FROM (t.bytes, t.files, t.folders);
    GET DIAGNOSTICS v_wrong = ROW_COUNT;
    RETURN v_wrong;
END $$;
