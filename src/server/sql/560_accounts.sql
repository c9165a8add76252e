-- Accounts, logins and sessions. Refusals are values here too: the column refused, NULL when it was done.
--
--   drive_sign_up(email, hash, name, ip)                     the first one becomes administrator and closes signing up
--   drive_session_open(user, ip, agent, lifetime_s) -> session id
--   drive_session_close(user, session) · drive_sessions_seen(ids[])
--   drive_sub_user_create(owner, email, hash, name, permissions[]) · drive_sub_user_update(owner, id, permissions[], name)
--   drive_sub_user_delete(owner, id)
--   drive_storage_limit(admin, user, bytes or NULL) · drive_signup_toggle(admin, enabled)
--   drive_heartbeat(user, session, version, platform) · drive_audit(…)

CREATE FUNCTION drive_audit(p_user text, p_action text, p_type text, p_id text, p_status text, p_metadata jsonb)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO audit_log (user_id, account_owner_id, actor_role, action, resource_type, resource_id, status, metadata)
    SELECT p_user, coalesce(u.parent_user_id, u.id, p_user), CASE WHEN u.parent_user_id IS NULL THEN 'owner' ELSE 'sub_user' END,
           p_action, p_type, p_id, p_status, p_metadata
    FROM (SELECT) one LEFT JOIN users u ON u.id = p_user
$$;

CREATE FUNCTION drive_sign_up(p_email text, p_hash text, p_name text, p_ip text,
                              OUT refused text, OUT id text, OUT created_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE a app_settings;
BEGIN
    SELECT * INTO a FROM app_settings FOR UPDATE;
    IF NOT a.signup_enabled THEN refused := 'DISABLED'; RETURN; END IF;
    INSERT INTO users (email, password, name, permissions)
    VALUES (p_email, p_hash, p_name, '{}') ON CONFLICT (lower(email)) DO NOTHING
    RETURNING users.id, users.created_at INTO id, created_at;
    IF id IS NULL THEN refused := 'EMAIL_TAKEN'; RETURN; END IF;
    IF a.first_user_id IS NULL THEN
        UPDATE app_settings SET first_user_id = drive_sign_up.id, signup_enabled = false;
    END IF;
    PERFORM drive_audit(id, 'auth.signup', 'user', id, 'success', jsonb_build_object('ip', p_ip));
END $$;

CREATE FUNCTION drive_session_open(p_user text, p_ip text, p_agent text, p_lifetime_s bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE v_id text;
BEGIN
    DELETE FROM sessions WHERE user_id = p_user AND expires_at < now();
    INSERT INTO sessions (user_id, ip, user_agent, expires_at)
    VALUES (p_user, p_ip, p_agent, now() + p_lifetime_s * interval '1 second') RETURNING id INTO v_id;
    PERFORM drive_audit(p_user, 'auth.login', 'session', v_id, 'success', jsonb_build_object('ip', p_ip));
    RETURN v_id;
END $$;

-- Edit locks end with the session. One that another call holds just now is skipped: it is being let go, or lapses soon.
CREATE FUNCTION drive_session_close(p_user text, p_session text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sessions SET revoked_at = now() WHERE id = p_session AND user_id = p_user AND revoked_at IS NULL;
    IF NOT FOUND THEN RETURN false; END IF;
    DELETE FROM locks WHERE file_id IN (SELECT file_id FROM locks WHERE session_id = p_session FOR UPDATE SKIP LOCKED);
    PERFORM drive_audit(p_user, 'auth.logout', 'session', p_session, 'success', NULL);
    RETURN true;
END $$;

-- Notes of no consequence wait for no disk: synchronous_commit off until the end of the transaction. Nor for each other:
-- two servers that know the same sessions name them in different orders.
CREATE FUNCTION drive_sessions_seen(p_ids text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE sessions SET last_seen_at = now()
    WHERE id IN (SELECT id FROM sessions WHERE id = ANY (p_ids) FOR NO KEY UPDATE SKIP LOCKED);
END $$;

-- A session that is renewed lives on with its token.
CREATE FUNCTION drive_session_extend(p_session text, p_lifetime_s bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE sessions SET expires_at = greatest(expires_at, now() + p_lifetime_s * interval '1 second') WHERE id = p_session;
END $$;

CREATE FUNCTION drive_heartbeat(p_user text, p_session text, p_version text, p_platform text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    INSERT INTO client_heartbeats (user_id, session_id, app_version, platform) VALUES (p_user, p_session, p_version, p_platform)
    ON CONFLICT (user_id, session_id) DO UPDATE
    SET app_version = excluded.app_version, platform = excluded.platform, last_seen_at = now();
END $$;

CREATE FUNCTION drive_sub_user_create(p_owner text, p_email text, p_hash text, p_name text, p_permissions text[],
                                      OUT refused text, OUT id text, OUT created_at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO users (email, password, name, parent_user_id, permissions)
    VALUES (p_email, p_hash, p_name, p_owner, p_permissions) ON CONFLICT (lower(email)) DO NOTHING
    RETURNING users.id, users.created_at INTO id, created_at;
    IF id IS NULL THEN refused := 'EMAIL_TAKEN'; RETURN; END IF;
    PERFORM drive_audit(p_owner, 'account.sub_user.create', 'user', id, 'success', jsonb_build_object('permissions', p_permissions));
END $$;

-- NULL leaves a field as it is.
CREATE FUNCTION drive_sub_user_update(p_owner text, p_id text, p_permissions text[], p_name text, p_hash text)
RETURNS SETOF users LANGUAGE plpgsql AS $$
DECLARE u users;
BEGIN
    UPDATE users SET permissions = coalesce(p_permissions, permissions), name = coalesce(p_name, name),
                     password = coalesce(p_hash, password)
    WHERE id = p_id AND parent_user_id = p_owner RETURNING * INTO u;
    IF u.id IS NULL THEN RETURN; END IF;
    PERFORM drive_audit(p_owner, 'account.sub_user.update', 'user', p_id, 'success', jsonb_build_object('permissions', u.permissions));
    RETURN NEXT u;
END $$;

CREATE FUNCTION drive_sub_user_delete(p_owner text, p_id text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM users WHERE id = p_id AND parent_user_id = p_owner;
    IF NOT FOUND THEN RETURN false; END IF;
    DELETE FROM locks WHERE file_id IN (SELECT file_id FROM locks WHERE user_id = p_id FOR UPDATE SKIP LOCKED);
    PERFORM drive_audit(p_owner, 'account.sub_user.delete', 'user', p_id, 'success', NULL);
    RETURN true;
END $$;

CREATE FUNCTION drive_signup_toggle(p_admin text, p_enabled boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE app_settings SET signup_enabled = p_enabled;
    PERFORM drive_audit(p_admin, 'admin.settings.update', 'settings', 'signup', 'success', jsonb_build_object('enabled', p_enabled));
END $$;

-- False: no such owner.
CREATE FUNCTION drive_storage_limit(p_admin text, p_user text, p_limit bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE users SET storage_limit = p_limit WHERE id = p_user AND parent_user_id IS NULL;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM drive_audit(p_admin, 'admin.user.update', 'user', p_user, 'success', jsonb_build_object('storageLimit', p_limit));
    RETURN true;
END $$;
