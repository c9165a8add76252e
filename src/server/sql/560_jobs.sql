-- Jobs: work that outlives its request. One account's jobs run one after the other, in the order of their coming; those
-- of different accounts side by side, in whichever server claims them. A job whose server died is claimed by another, so
-- each step here may be called twice: what was done is not done again.
--
--   drive_job_queue(account, actor, kind, ids[], target) -> the job, or why not
--   drive_job_claim(server, at[]) -> the next job that nobody is at; the server is at these
--   drive_job_apply(account, actor, job)     deletes, trashes or restores: rows and the job's state in one transaction
--   drive_job_copied(job, ords[])            notes copied objects
--   drive_job_put_back(job, server, pause_s) lets go of it
--   drive_job_fail(job, code) -> objects that a copy may have written: nothing names them any more
--
-- Kinds: copy (540_copy.sql), purge, empty (the trash), trash, restore.

-- What can be refused is refused here, before anybody waits for the job. A copy's list and reservation are made now too:
-- it copies what there was when it was asked for.
CREATE FUNCTION drive_job_queue(p_account text, p_actor text, p_kind text, p_ids text[], p_target text)
RETURNS TABLE (refused text, detail text, job text) LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE v_job text := drive_new_id(); r drive_change; v_begun record; v_files bigint := 0;
BEGIN
    IF p_kind = 'purge' THEN
        r := drive_missing(p_account, drive_distinct(p_ids), true);
        IF r.refused IS NOT NULL THEN RETURN QUERY SELECT r.refused, r.detail, NULL::text; RETURN; END IF;
    END IF;
    INSERT INTO jobs (id, account_id, user_id, kind, args)
    VALUES (v_job, p_account, p_actor, p_kind, jsonb_build_object('ids', to_jsonb(p_ids), 'target', p_target));
    IF p_kind = 'copy' THEN
        SELECT * INTO v_begun FROM drive_copy_begin(p_account, p_actor, v_job, p_ids, p_target);
        IF v_begun.refused IS NOT NULL THEN
            DELETE FROM jobs WHERE id = v_job;
            RETURN QUERY SELECT v_begun.refused, v_begun.detail, NULL::text;
            RETURN;
        END IF;
        SELECT count(*) INTO v_files FROM copy_items WHERE job_id = v_job AND type = 'file';
        UPDATE jobs SET total = v_files WHERE id = v_job;
    END IF;
    RETURN QUERY SELECT NULL::text, NULL::text, v_job;
END $$;

-- What the server claimed and is not at was never told to it, or could not be put back: the database was away just then.
CREATE FUNCTION drive_job_claim(p_server text, p_at text[])
RETURNS TABLE (job text, account text, actor text, kind text, attempts integer) LANGUAGE sql AS $$
    UPDATE jobs SET status = 'active', started_at = coalesce(started_at, now()), attempts = jobs.attempts + 1, server_id = p_server
    WHERE id = (
        SELECT j.id FROM jobs j
        WHERE j.status IN ('created', 'active') AND (j.not_before IS NULL OR j.not_before < now())
          AND j.id <> ALL (p_at)
          AND NOT EXISTS (SELECT FROM servers s
                          WHERE s.id = j.server_id AND s.id <> p_server AND s.seen_at > now() - interval '1 minute')
          AND NOT EXISTS (SELECT FROM jobs o WHERE o.account_id = j.account_id AND o.status IN ('created', 'active')
                          AND (o.created_at, o.id) < (j.created_at, j.id))
        ORDER BY j.created_at, j.id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, account_id, user_id, kind, attempts
$$;

-- Lets go of a job that could not be finished now. Not of one that another server claimed because this one was silent.
CREATE FUNCTION drive_job_put_back(p_job text, p_server text, p_pause_s integer) RETURNS void LANGUAGE sql AS $$
    UPDATE jobs SET server_id = NULL, not_before = now() + p_pause_s * interval '1 second'
    WHERE id = p_job AND status = 'active' AND server_id = p_server
$$;

-- The rows that changed; none when it was applied before. The objects' keys stay with the job until they are deleted.
CREATE FUNCTION drive_job_apply(p_account text, p_actor text, p_job text)
RETURNS SETOF drive_change LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE j jobs; r drive_change; v_ids text[]; v_keys text[] := '{}'; v_done text[] := '{}'; v_count bigint; v_refused text;
BEGIN
    PERFORM drive_account(p_account);
    SELECT * INTO j FROM jobs WHERE id = p_job AND account_id = p_account AND status = 'active' AND keys IS NULL FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    IF j.kind = 'empty' THEN
        SELECT array_agg(id) INTO v_ids FROM files WHERE user_id = p_account AND trash_root = id;
    ELSE
        SELECT drive_distinct(array_agg(i)) INTO v_ids FROM jsonb_array_elements_text(j.args -> 'ids') AS i;
    END IF;
    v_count := drive_weight(v_ids);
    FOR r IN EXECUTE CASE j.kind WHEN 'trash' THEN 'SELECT * FROM drive_trash($1, $2, $3, NULL)'
                                 WHEN 'restore' THEN 'SELECT * FROM drive_restore($1, $2, $3, NULL)'
                                 ELSE 'SELECT * FROM drive_purge($1, $2, $3)' END USING p_account, p_actor, v_ids LOOP
        v_refused := coalesce(v_refused, r.refused);
        v_keys := v_keys || r.keys;
        v_done := v_done || r.id;
        r.keys := NULL;
        RETURN NEXT r;
    END LOOP;
    IF v_refused IS NOT NULL THEN
        PERFORM drive_job_fail(p_job, v_refused);
    ELSE
        UPDATE jobs SET keys = v_keys, total = greatest(cardinality(v_keys), 1), done = CASE WHEN cardinality(v_keys) = 0 THEN 1 ELSE 0 END,
                        result = jsonb_build_object('count', v_count, 'ids', to_jsonb(v_done)),
                        status = CASE WHEN cardinality(v_keys) = 0 THEN 'completed' ELSE 'active' END,
                        finished_at = CASE WHEN cardinality(v_keys) = 0 THEN clock_timestamp() END
        WHERE id = p_job;
    END IF;
END $$;

-- The job's row before its items, as drive_copy_commit and drive_job_fail take them.
CREATE FUNCTION drive_job_copied(p_job text, p_ords integer[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v_n bigint;
BEGIN
    PERFORM FROM jobs WHERE id = p_job FOR NO KEY UPDATE;
    UPDATE copy_items SET copied = true WHERE job_id = p_job AND ord = ANY (p_ords) AND NOT copied;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    UPDATE jobs SET done = done + v_n WHERE id = p_job;
END $$;

-- A copy's reservation and items go in the same transaction: an open job without its items would be committed as an empty
-- copy by the server that claims it next.
CREATE FUNCTION drive_job_fail(p_job text, p_code text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM drive_account(account_id) FROM jobs WHERE id = p_job;
    UPDATE jobs SET status = 'failed', error = p_code, finished_at = now() WHERE id = p_job AND status IN ('created', 'active');
    IF NOT FOUND THEN RETURN; END IF;
    PERFORM drive_release(p_job);
    RETURN QUERY DELETE FROM copy_items WHERE job_id = p_job RETURNING path;
END $$;
