-- Copying: begin notes what will be added and reserves its bytes, the server copies the objects, commit adds all rows in
-- one statement. A copy that was begun is finished or given up after a restart; until the commit nobody sees any of it.

CREATE FUNCTION drive_copy_begin(p_account text, p_actor text, p_job text, p_ids text[], p_target text)
RETURNS TABLE (refused text, detail text, items bigint, bytes bigint) LANGUAGE plpgsql AS $$
DECLARE u users; r drive_change; v_ids text[] := drive_distinct(p_ids); v_items bigint; v_bytes bigint; v_over jsonb;
BEGIN
    u := drive_account(p_account);
    IF u.id IS NULL THEN r := drive_refusal('ACCOUNT_NOT_FOUND'); ELSE r := drive_place_refusal(p_account, v_ids, p_target); END IF;
    IF r.refused IS NULL THEN
        SELECT coalesce(sum(s.size), 0)::bigint INTO v_bytes FROM unnest(v_ids) AS i, drive_subtree(ARRAY[i], true) AS s;
        v_over := drive_over_quota(u, v_bytes);
        IF v_over IS NOT NULL THEN r := drive_refusal('STORAGE_LIMIT_EXCEEDED', v_over); END IF;
    END IF;
    IF r.refused IS NOT NULL THEN RETURN QUERY SELECT r.refused, r.detail, 0::bigint, 0::bigint; RETURN; END IF;

    WITH RECURSIVE t AS (
        SELECT f.id AS source, f.type, drive_new_id() AS id, NULL::text AS parent, '{}'::text[] AS above, n
        FROM unnest(v_ids) WITH ORDINALITY AS i (id, n) JOIN files f ON f.id = i.id
        UNION ALL
        SELECT c.id, c.type, drive_new_id(), t.id, t.above || t.id, t.n
        FROM t JOIN files c ON c.parent_id = t.source
        WHERE t.type = 'folder' AND c.trash_root IS NULL AND cardinality(t.above) <= drive_max_depth()
    )
    INSERT INTO copy_items (job_id, ord, source_id, id, parent_id, above, type, name, size, mime_type, modified, source_path, path)
    SELECT p_job, row_number() OVER (ORDER BY cardinality(t.above), t.n, f.name), f.id, t.id, t.parent, t.above, f.type, f.name, f.size,
           f.mime_type, f.modified, f.path, CASE WHEN f.type = 'file' THEN p_account || '/' || drive_new_id() END
    FROM t JOIN files f ON f.id = t.source;
    GET DIAGNOSTICS v_items = ROW_COUNT;
    INSERT INTO storage_reservations (id, user_id, bytes, purpose, expires_at) VALUES (p_job, p_account, v_bytes, 'copy', now() + interval '1 day');
    UPDATE users SET storage_reserved = storage_reserved + v_bytes WHERE id = p_account;
    RETURN QUERY SELECT NULL::text, NULL::text, v_items, v_bytes;
END $$;

-- The source was replaced or deleted while the copy ran: takes its content as it is now. NULL: gone for good, the item
-- is left out.
CREATE FUNCTION drive_copy_refresh(p_job text, p_ord integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE v_path text;
BEGIN
    UPDATE copy_items c SET source_path = f.path, size = f.size, mime_type = f.mime_type, modified = f.modified
    FROM files f WHERE c.job_id = p_job AND c.ord = p_ord AND f.id = c.source_id RETURNING f.path INTO v_path;
    IF NOT FOUND THEN DELETE FROM copy_items WHERE job_id = p_job AND ord = p_ord; END IF;
    RETURN v_path;
END $$;

-- Makes the copy visible, whole. Called again after it was done, or after another server failed the job and took its
-- items away, it gives back no rows: the job holds the result.
CREATE FUNCTION drive_copy_commit(p_account text, p_actor text, p_job text)
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
DECLARE
    u users; f files; v_target text; v_chain text[]; v_bytes bigint; v_files bigint; v_folders bigint; v_levels integer; v_over jsonb;
    v_seq bigint; v_n bigint := 0; v_now timestamptz; v_item record; v_ids text[] := '{}';
BEGIN
    u := drive_account(p_account);
    IF u.id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    SELECT args ->> 'target' INTO v_target FROM jobs WHERE id = p_job AND account_id = p_account AND status IN ('created', 'active') FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    IF NOT drive_is_folder(p_account, v_target) THEN RETURN NEXT drive_refusal('PARENT_NOT_FOUND'); RETURN; END IF;
    SELECT coalesce(sum(size), 0), count(*) FILTER (WHERE type = 'file'), count(*) FILTER (WHERE type = 'folder'),
           max(cardinality(above) + 1) FILTER (WHERE type = 'folder')
    INTO v_bytes, v_files, v_folders, v_levels FROM copy_items WHERE job_id = p_job;
    v_chain := drive_chain(v_target);
    IF cardinality(v_chain) + v_levels > drive_max_depth() THEN
        RETURN NEXT drive_too_deep();
        RETURN;
    END IF;
    v_over := drive_over_quota(u, v_bytes, p_job);
    IF v_over IS NOT NULL THEN RETURN NEXT drive_refusal('STORAGE_LIMIT_EXCEEDED', v_over); RETURN; END IF;

    v_now := clock_timestamp();
    -- The tops first and one by one: a name given to one is taken for the next.
    FOR v_item IN SELECT * FROM copy_items WHERE job_id = p_job AND parent_id IS NULL ORDER BY ord LOOP
        INSERT INTO files (id, name, type, size, mime_type, user_id, parent_id, path, modified, created_at, accessed_at)
        VALUES (v_item.id, drive_free_name(p_account, v_target, v_item.name, v_item.type), v_item.type, v_item.size, v_item.mime_type,
                p_account, v_target, v_item.path, v_item.modified, v_now, v_now);
        v_ids := v_ids || v_item.id;
    END LOOP;
    INSERT INTO files (id, name, type, size, mime_type, user_id, parent_id, path, modified, created_at, accessed_at,
                       aggregate_size, aggregate_file_count, aggregate_folder_count)
    SELECT c.id, c.name, c.type, c.size, c.mime_type, p_account, c.parent_id, c.path, c.modified, v_now, v_now,
           coalesce(t.bytes, 0), coalesce(t.files, 0), coalesce(t.folders, 0)
    FROM copy_items c LEFT JOIN drive_copy_totals(p_job) t ON t.folder = c.id
    WHERE c.job_id = p_job AND c.parent_id IS NOT NULL ORDER BY c.ord;
    UPDATE files SET aggregate_size = t.bytes, aggregate_file_count = t.files, aggregate_folder_count = t.folders
    FROM drive_copy_totals(p_job) t WHERE id = t.folder AND id = ANY (v_ids);
    PERFORM drive_add_totals(v_chain, v_bytes, v_files, v_folders);

    v_seq := drive_book(p_account, cardinality(v_ids), v_bytes, p_job);
    FOR v_item IN SELECT * FROM copy_items WHERE job_id = p_job AND parent_id IS NULL ORDER BY ord LOOP
        v_n := v_n + 1;
        SELECT * INTO f FROM files WHERE id = v_item.id;
        RETURN NEXT drive_record(f, v_seq + v_n, 'file.copied', 'file.copy', p_actor, ARRAY[coalesce(v_target, '')],
                                 jsonb_build_object('sourceId', v_item.source_id), NULL, v_now);
    END LOOP;
    DELETE FROM copy_items WHERE job_id = p_job;
    UPDATE jobs SET status = 'completed', finished_at = clock_timestamp(),
                    result = jsonb_build_object('count', v_files + v_folders, 'ids', to_jsonb(v_ids)) WHERE id = p_job;
END $$;

CREATE FUNCTION drive_copy_totals(p_job text) RETURNS TABLE (folder text, bytes bigint, files bigint, folders bigint) LANGUAGE sql STABLE AS $$
    SELECT a, coalesce(sum(c.size), 0)::bigint, count(*) FILTER (WHERE c.type = 'file'), count(*) FILTER (WHERE c.type = 'folder')
    FROM copy_items c, unnest(c.above) AS a WHERE c.job_id = p_job GROUP BY a
$$;
