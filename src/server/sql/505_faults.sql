-- Planted bugs, for judging the judge (faults.h): a server started with --fault gives its connections the probability of
-- each. On all others the setting is missing and this says no.
CREATE FUNCTION drive_fault(p_name text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN random() < coalesce(current_setting('drive.' || p_name, true)::float8, 0);
END $$;
