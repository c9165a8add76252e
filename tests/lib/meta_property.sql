-- Random operations on one account and, after each few, everything that must hold, told by queries that share nothing
-- with the functions under test. In a schema of its own, so that nothing is taken for a function of the server's.
CREATE SCHEMA test;

-- Ids in turn, so that a seed is the same run each time.
CREATE SEQUENCE test.ids START 1000000000000001;
CREATE OR REPLACE FUNCTION drive_new_id() RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT nextval('test.ids')::text $$;

-- One upload, for short.
CREATE FUNCTION drive_upload_commit(p_account text, p_actor text, p_parent text, p_name text, p_size bigint, p_mime text,
                                    p_path text, p_modified bigint, p_reservation text)
RETURNS SETOF drive_change LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM drive_upload_commit_many(p_account, p_actor, ARRAY[p_parent], ARRAY[p_name], ARRAY[p_size],
                                                        ARRAY[p_mime], ARRAY[p_path], ARRAY[p_modified], p_reservation);
END $$;

CREATE FUNCTION test.pick(p_where text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE v text;
BEGIN
    EXECUTE 'SELECT id FROM files WHERE ' || p_where || ' ORDER BY md5(id || $1) LIMIT 1' INTO v USING random()::text;
    RETURN v;
END $$;

CREATE FUNCTION test.picks(p_where text, p_n integer) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE v text[];
BEGIN
    EXECUTE 'SELECT coalesce(array_agg(id), ''{}'') FROM (SELECT id FROM files WHERE ' || p_where || ' ORDER BY md5(id || $1) LIMIT ' || p_n || ') t' INTO v
        USING random()::text;
    RETURN v;
END $$;

-- What does not hold, in words; no row when all does.
CREATE FUNCTION test.wrong(p_account text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE below AS (
        SELECT id AS folder, id FROM files WHERE type = 'folder' AND user_id = p_account
        UNION ALL
        SELECT b.folder, c.id FROM below b JOIN files c ON c.parent_id = b.id
    ), truth AS (
        SELECT b.folder, coalesce(sum(f.size), 0) AS s, count(*) FILTER (WHERE f.type = 'file') AS n,
               count(*) FILTER (WHERE f.type = 'folder' AND f.id <> b.folder) AS d
        FROM below b JOIN files f USING (id) GROUP BY b.folder
    )
    SELECT format('totals of %s: %s %s %s, not %s %s %s', f.name, f.aggregate_size, f.aggregate_file_count, f.aggregate_folder_count, s, n, d)
    FROM files f JOIN truth t ON t.folder = f.id
    WHERE (f.aggregate_size, f.aggregate_file_count, f.aggregate_folder_count) IS DISTINCT FROM (s, n, d);

    RETURN QUERY SELECT format('storage: used %s of %s, reserved %s of %s', u.storage_used, used, u.storage_reserved, held)
    FROM users u, (SELECT coalesce(sum(size), 0) AS used FROM files WHERE user_id = p_account) a,
         (SELECT coalesce(sum(bytes), 0) AS held FROM storage_reservations WHERE user_id = p_account) b
    WHERE u.id = p_account AND (u.storage_used <> used OR u.storage_reserved <> held);

    RETURN QUERY SELECT format('change numbers: %s rows, from %s to %s, the account says %s', count(*), min(seq), max(seq), max(u.change_seq))
    FROM changes c JOIN users u ON u.id = c.account_id WHERE c.account_id = p_account
    HAVING count(*) <> max(seq) OR min(seq) <> 1 OR max(seq) <> max(u.change_seq);

    RETURN QUERY SELECT format('audit rows: %s, changes: %s', a, c)
    FROM (SELECT count(*) AS a FROM audit_log WHERE account_owner_id = p_account) x,
         (SELECT count(*) AS c FROM changes WHERE account_id = p_account) y WHERE a <> c;

    RETURN QUERY SELECT format('two of one name: %s', normalize(name, NFC)) FROM files
    WHERE user_id = p_account AND deleted_at IS NULL GROUP BY parent_id, normalize(name, NFC) HAVING count(*) > 1;

    RETURN QUERY SELECT format('%s is live below %s, which is not a live folder of the account', f.name, p.name) FROM files f
    JOIN files p ON p.id = f.parent_id
    WHERE f.user_id = p_account AND f.deleted_at IS NULL AND (p.deleted_at IS NOT NULL OR p.type <> 'folder' OR p.user_id <> p_account);

    RETURN QUERY SELECT format('%s lies in the trash because of %s, which is not there', f.name, f.trash_root) FROM files f
    LEFT JOIN files t ON t.id = f.trash_root
    WHERE f.user_id = p_account AND f.deleted_at IS NOT NULL AND (t.id IS NULL OR t.trash_root <> t.id OR t.deleted_at <> f.deleted_at);

    RETURN QUERY SELECT format('%s left copy items', count(*)) FROM copy_items HAVING count(*) > 0;
END $$;

CREATE FUNCTION test.one(p_account text, p_i integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    live text := format('user_id = %L AND deleted_at IS NULL', p_account);
    gone text := format('user_id = %L AND deleted_at IS NOT NULL', p_account);
    folder text := live || ' AND type = ''folder''';
    file text := live || ' AND type = ''file''';
    a text[]; t text; n text; r drive_change; j text; c record; k float8 := random();
BEGIN
    n := (ARRAY['notes', 'report.pdf', 'Amélie.txt', 'x', 'архив', 'b.tar.gz'])[1 + floor(random() * 6)::int];
    t := CASE WHEN random() < 0.2 THEN NULL ELSE test.pick(folder) END;
    CASE
    WHEN k < 0.14 THEN
        SELECT * INTO r FROM drive_folder_create(p_account, p_account, t, n || ' ' || floor(random() * 10));
    WHEN k < 0.34 THEN
        SELECT * INTO r FROM drive_upload_commit(p_account, p_account, t, n, floor(random() * 1000)::bigint, 'text/plain', p_account || '/' || drive_new_id(), NULL, NULL);
    WHEN k < 0.40 THEN
        SELECT * INTO r FROM drive_upload_commit_many(p_account, p_account, ARRAY[t, test.pick(folder), t, 'none'], ARRAY[n, 'many', 'many', 'lost'],
            ARRAY[1, 20, 300, 4000], ARRAY['a/b', 'a/b', 'a/b', 'a/b'],
            ARRAY[p_account || '/' || drive_new_id(), p_account || '/' || drive_new_id(), p_account || '/' || drive_new_id(), 'k'], ARRAY[NULL, 1, 2, 3]::bigint[], NULL);
    WHEN k < 0.44 THEN
        SELECT * INTO r FROM drive_folder_path(p_account, p_account, t, ARRAY['deep ' || floor(random() * 3), 'er', n]);
    WHEN k < 0.54 THEN
        SELECT * INTO r FROM drive_replace_commit(p_account, p_account, 's', test.pick(file), NULL, floor(random() * 3000)::bigint, 'text/plain',
            p_account || '/' || drive_new_id(), NULL, NULL);
    WHEN k < 0.60 THEN
        SELECT * INTO r FROM drive_rename(p_account, p_account, test.pick(live), n || floor(random() * 9));
    WHEN k < 0.72 THEN
        a := test.picks(live, 1 + floor(random() * 4)::int);
        SELECT * INTO r FROM drive_move(p_account, p_account, a, t);
    WHEN k < 0.74 THEN
        SELECT * INTO r FROM drive_mark(p_account, p_account, test.picks(live, 3), 'star', random() < 0.5);
    WHEN k < 0.81 THEN
        a := test.picks(live, 1 + floor(random() * 3)::int);
        SELECT * INTO r FROM drive_trash(p_account, p_account, a, 200);
    WHEN k < 0.88 THEN
        SELECT * INTO r FROM drive_restore(p_account, p_account, test.picks(gone, 1 + floor(random() * 3)::int), NULL);
    WHEN k < 0.92 THEN
        SELECT * INTO r FROM drive_purge(p_account, p_account, CASE WHEN random() < 0.1 THEN NULL ELSE test.picks(gone, 2) END);
    WHEN k < 0.97 THEN
        INSERT INTO jobs (account_id, user_id, kind, args) VALUES (p_account, p_account, 'copy', jsonb_build_object('target', t)) RETURNING id INTO j;
        SELECT * INTO c FROM drive_copy_begin(p_account, p_account, j, test.picks(live, 2), t);
        r.refused := c.refused;
        IF c.refused IS NULL THEN
            IF random() < 0.2 THEN
                PERFORM drive_job_fail(j, 'NOT_FOUND');
            ELSE
                IF random() < 0.3 THEN PERFORM drive_trash(p_account, p_account, test.picks(live, 1), NULL); PERFORM drive_purge(p_account, p_account, NULL); END IF;
                PERFORM drive_copy_refresh(j, ord) FROM copy_items WHERE job_id = j AND type = 'file';
                SELECT * INTO r FROM drive_copy_commit(p_account, p_account, j);
                IF r.refused IS NOT NULL THEN PERFORM drive_job_fail(j, r.refused); END IF;
            END IF;
        END IF;
    ELSE
        SELECT * INTO c FROM drive_reserve(p_account, floor(random() * 5000)::bigint, 'test', 60);
        IF c.refused IS NULL AND random() < 0.7 THEN
            SELECT * INTO r FROM drive_upload_commit(p_account, p_account, t, n, floor(random() * 1000)::bigint, 'text/plain', p_account || '/' || drive_new_id(), NULL, c.id);
            PERFORM drive_release(c.id);
        ELSIF c.refused IS NULL THEN
            PERFORM drive_release(c.id);
        END IF;
    END CASE;
    RETURN coalesce(r.refused, 'done');
END $$;

-- n operations; stops at the first step after which something does not hold.
CREATE FUNCTION test.run(p_account text, p_seed float8, p_n integer, p_every integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE v text; v_ops jsonb := '{}'; v_what text;
BEGIN
    PERFORM setseed(p_seed);
    FOR i IN 1 .. p_n LOOP
        v_what := test.one(p_account, i);
        v_ops := v_ops || jsonb_build_object(v_what, coalesce((v_ops ->> v_what)::int, 0) + 1);
        IF i % p_every = 0 OR i = p_n THEN
            FOR v IN SELECT * FROM test.wrong(p_account) LOOP
                RETURN NEXT format('after %s operations: %s', i, v);
            END LOOP;
            IF FOUND THEN RETURN; END IF;
        END IF;
    END LOOP;
    RETURN NEXT v_ops::text;
END $$;
