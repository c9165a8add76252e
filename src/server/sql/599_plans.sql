-- A function's plans are made once a connection, perhaps while the tables are empty, and are kept while they grow. So the
-- small functions may only look rows up by index, one by one; the two that work on a whole account plan each time anew.
DO $$
DECLARE f record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS name, p.proname IN ('drive_copy_commit', 'reconcile_folder_aggregates') AS whole
             FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
             WHERE p.pronamespace = current_schema()::regnamespace AND l.lanname = 'plpgsql'
               AND (p.proname = 'reconcile_folder_aggregates' OR p.proname LIKE 'drive\_%' AND p.proretset OR
                    p.proname IN ('drive_release', 'drive_unlock', 'drive_touch'))
    LOOP
        EXECUTE 'ALTER FUNCTION ' || f.name || ' SET jit = off';
        IF f.whole THEN
            EXECUTE 'ALTER FUNCTION ' || f.name || ' SET plan_cache_mode = force_custom_plan';
        ELSE
            EXECUTE 'ALTER FUNCTION ' || f.name || ' SET enable_seqscan = off';
            EXECUTE 'ALTER FUNCTION ' || f.name || ' SET enable_hashjoin = off';
            EXECUTE 'ALTER FUNCTION ' || f.name || ' SET enable_mergejoin = off';
        END IF;
    END LOOP;
END $$;
