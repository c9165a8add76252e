-- The functions below change shape between versions; CREATE OR REPLACE cannot. All of it is one transaction, so that
-- another server on the same database never sees them missing.
DO $$
DECLARE f record;
BEGIN
    FOR f IN SELECT p.oid::regprocedure AS name FROM pg_proc p
             WHERE p.pronamespace = current_schema()::regnamespace
               AND (p.proname LIKE 'drive\_%' OR p.proname = 'reconcile_folder_aggregates')
               AND p.proname NOT IN ('drive_new_id', 'drive_fold', 'drive_name_key')
    LOOP
        EXECUTE 'DROP FUNCTION ' || f.name || ' CASCADE';
    END LOOP;
    DROP TYPE IF EXISTS drive_change CASCADE;
END $$;
