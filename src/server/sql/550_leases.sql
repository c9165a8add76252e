-- What is held for a time: storage reservations, edit locks; and what is noted beside the writes.

CREATE FUNCTION drive_upload_check(p_account text, p_parent text, p_bytes bigint) RETURNS SETOF drive_change LANGUAGE plpgsql STABLE AS $$
DECLARE u users; v_over jsonb;
BEGIN
    SELECT * INTO u FROM users WHERE id = p_account;
    IF u.id IS NULL THEN RETURN NEXT drive_refusal('ACCOUNT_NOT_FOUND'); RETURN; END IF;
    IF NOT drive_is_folder(p_account, p_parent) THEN RETURN NEXT drive_refusal('PARENT_NOT_FOUND'); RETURN; END IF;
    v_over := drive_over_quota(u, p_bytes);
    IF v_over IS NOT NULL THEN RETURN NEXT drive_refusal('STORAGE_LIMIT_EXCEEDED', v_over); END IF;
END $$;

-- One row: a refusal, or the file as it stands.
CREATE FUNCTION drive_replace_check(p_account text, p_session text, p_file text, p_if_match text[], p_bytes bigint,
                                    p_lock text DEFAULT NULL)
RETURNS SETOF drive_change LANGUAGE plpgsql STABLE AS $$
DECLARE u users; f files; r drive_change; v_over jsonb;
BEGIN
    f := drive_get(p_account, p_file);
    r := drive_replace_refusal(f, p_session, p_if_match, p_lock);
    IF r.refused IS NOT NULL THEN RETURN NEXT r; RETURN; END IF;
    SELECT * INTO u FROM users WHERE id = p_account;
    v_over := drive_over_quota(u, p_bytes - f.size);
    IF v_over IS NOT NULL THEN RETURN NEXT drive_refusal('STORAGE_LIMIT_EXCEEDED', v_over); RETURN; END IF;
    RETURN NEXT drive_unchanged(f);
END $$;

CREATE FUNCTION drive_reserve(p_account text, p_bytes bigint, p_purpose text, p_ttl_s integer)
RETURNS TABLE (refused text, detail text, id text) LANGUAGE plpgsql AS $$
DECLARE u users; v_over jsonb; v_id text := drive_new_id();
BEGIN
    u := drive_account(p_account);
    IF u.id IS NULL THEN RETURN QUERY SELECT 'ACCOUNT_NOT_FOUND', NULL::text, NULL::text; RETURN; END IF;
    v_over := drive_over_quota(u, p_bytes);
    IF v_over IS NOT NULL THEN RETURN QUERY SELECT 'STORAGE_LIMIT_EXCEEDED', v_over::text, NULL::text; RETURN; END IF;
    INSERT INTO storage_reservations (id, user_id, bytes, purpose, expires_at)
    VALUES (v_id, p_account, p_bytes, p_purpose, now() + p_ttl_s * interval '1 second');
    UPDATE users SET storage_reserved = storage_reserved + p_bytes WHERE users.id = p_account;
    RETURN QUERY SELECT NULL::text, NULL::text, v_id;
END $$;

-- False when it had ended already.
CREATE FUNCTION drive_release(p_reservation text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE v_account text;
BEGIN
    SELECT user_id INTO v_account FROM storage_reservations WHERE id = p_reservation;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM drive_account(v_account);
    IF NOT EXISTS (SELECT FROM storage_reservations WHERE id = p_reservation) THEN RETURN false; END IF;
    PERFORM drive_book(v_account, 0, 0, p_reservation);
    RETURN true;
END $$;

-- The holder is whoever was given the id: apps that share a session exclude each other too. Only its session's call that
-- names the id renews the lock; p_lock NULL asks for a new one.
CREATE FUNCTION drive_lock(p_account text, p_actor text, p_session text, p_holder_name text, p_file text, p_lock text, p_ttl_s integer)
RETURNS TABLE (refused text, detail text, lock_id text, version bigint, expires_at bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE f files; l locks; r drive_change; v_now timestamptz;
BEGIN
    -- The file's row is what a lock and a replace of the same file wait for each other on.
    SELECT * INTO f FROM files WHERE id = p_file FOR NO KEY UPDATE;
    IF f.id IS NULL OR f.user_id <> p_account OR f.deleted_at IS NOT NULL THEN
        r := drive_refusal('NOT_FOUND');
    ELSIF f.type <> 'file' THEN
        r := drive_refusal('NOT_A_FILE');
    END IF;
    IF r.refused IS NOT NULL THEN RETURN QUERY SELECT r.refused, r.detail, NULL::text, NULL::bigint, NULL::bigint; RETURN; END IF;
    IF drive_fault('deadlock') THEN
        PERFORM FROM files WHERE id = ANY (drive_chain(f.parent_id)) FOR NO KEY UPDATE;
        PERFORM pg_sleep(0.05), drive_account(p_account);
    END IF;
    v_now := clock_timestamp();
    SELECT * INTO l FROM locks WHERE file_id = p_file AND expires_at > v_now;
    IF FOUND AND drive_fault('double_lock') THEN l := NULL; END IF;
    IF l.lock_id IS NOT NULL AND (l.session_id <> p_session OR l.lock_id IS DISTINCT FROM p_lock) THEN
        r := drive_locked(l);
        RETURN QUERY SELECT r.refused, r.detail, NULL::text, NULL::bigint, NULL::bigint;
        RETURN;
    END IF;
    INSERT INTO locks AS k (file_id, lock_id, account_id, user_id, session_id, holder_name, locked_at, expires_at)
    VALUES (p_file, coalesce(l.lock_id, drive_new_id()), p_account, p_actor, p_session, p_holder_name, v_now, v_now + p_ttl_s * interval '1 second')
    ON CONFLICT (file_id) DO UPDATE SET lock_id = excluded.lock_id, account_id = excluded.account_id, user_id = excluded.user_id,
        session_id = excluded.session_id, holder_name = excluded.holder_name, expires_at = excluded.expires_at,
        locked_at = CASE WHEN k.lock_id = excluded.lock_id THEN k.locked_at ELSE excluded.locked_at END
    RETURNING * INTO l;
    RETURN QUERY SELECT NULL::text, NULL::text, l.lock_id, f.version, drive_us(l.expires_at);
END $$;

-- NULL when it was let go, else the code of the refusal. It waits for the disk like any other write: a crash of Postgres
-- would bring the lock back, and keep others from the file for two minutes.
CREATE FUNCTION drive_unlock(p_account text, p_session text, p_file text, p_lock_id text)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE v_account text;
BEGIN
    SELECT user_id INTO v_account FROM files WHERE id = p_file FOR NO KEY UPDATE;
    IF v_account IS DISTINCT FROM p_account THEN RETURN 'NOT_FOUND'; END IF;
    DELETE FROM locks WHERE file_id = p_file AND lock_id = p_lock_id AND session_id = p_session AND expires_at > clock_timestamp();
    IF NOT FOUND THEN RETURN 'LOCK_LOST'; END IF;
    RETURN NULL;
END $$;

-- Reading a file is no change: no number, no event, and never a wait for a write. A row that is being written is skipped.
CREATE FUNCTION drive_touch(p_ids text[], p_at_us bigint[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE v_n integer;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    WITH t AS (
        SELECT i.id, max(i.at) AS at FROM unnest(p_ids, p_at_us) AS i (id, at) GROUP BY i.id
    ), mine AS (
        SELECT f.id FROM files f WHERE f.id = ANY (p_ids) ORDER BY f.id FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE files f SET accessed_at = greatest(f.accessed_at, drive_time(t.at)) FROM t JOIN mine USING (id) WHERE f.id = t.id;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    RETURN v_n;
END $$;

CREATE FUNCTION drive_audit_downloads(p_users text[], p_accounts text[], p_files text[], p_at_us bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO audit_log (user_id, account_owner_id, actor_role, action, resource_type, resource_id, created_at)
    SELECT u, a, CASE WHEN u = a THEN 'owner' ELSE 'sub_user' END, 'file.download', 'file', f, drive_time(t)
    FROM unnest(p_users, p_accounts, p_files, p_at_us) AS d (u, a, f, t);
END $$;

-- Of these objects those that no row names; from now on none will (dead_objects). The owner's row keeps commits away
-- meanwhile.
CREATE FUNCTION drive_give_up_objects(p_account text, p_paths text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM drive_account(p_account);
    RETURN QUERY
    INSERT INTO dead_objects AS d (path)
    SELECT p FROM unnest(p_paths) AS p
    WHERE NOT EXISTS (SELECT FROM files f WHERE f.path = p) AND NOT EXISTS (SELECT FROM copy_items i WHERE i.path = p)
    ON CONFLICT (path) DO UPDATE SET at = now() RETURNING d.path;
END $$;

-- Ends what has lapsed and forgets old changes but for the last p_changes_kept of an account. Returns reservations ended.
-- Several servers call it: one of them does it, the others have nothing to do then. It holds the rows of all owners whose
-- reservations it ends; nobody else takes two.
CREATE FUNCTION drive_housekeeping(p_changes_kept bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE v_id text; v_n integer := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(727470) THEN RETURN 0; END IF;
    FOR v_id IN SELECT id FROM storage_reservations WHERE expires_at < now() ORDER BY user_id LOOP
        IF drive_release(v_id) THEN v_n := v_n + 1; END IF;
    END LOOP;
    DELETE FROM locks WHERE file_id IN (SELECT file_id FROM locks WHERE expires_at < now() - interval '1 minute' FOR UPDATE SKIP LOCKED);
    DELETE FROM dead_objects WHERE path IN (SELECT path FROM dead_objects WHERE at < now() - interval '1 day' FOR UPDATE SKIP LOCKED);
    DELETE FROM changes c USING users u WHERE u.id = c.account_id AND c.seq <= u.change_seq - p_changes_kept;
    RETURN v_n;
END $$;
