-- Searching by name: the first p_limit of the account's live items whose folded name holds the folded needle, literally.
-- Three ways, from the cheapest: what is found often is soon found by reading names in their order; three letters or
-- digits in a row are looked up by their trigrams; for less, all names are read, from an index that holds them folded.
CREATE FUNCTION drive_search(p_account text, p_needle text, p_limit bigint) RETURNS SETOF files LANGUAGE plpgsql STABLE AS $$
DECLARE v_needle text := drive_fold(p_needle); v_pattern text; v_ids text[];
BEGIN
    SELECT array_agg(id) INTO v_ids
    FROM (SELECT id FROM (SELECT id, drive_fold(name) AS folded FROM files WHERE user_id COLLATE "C" = p_account AND deleted_at IS NULL
                          ORDER BY name, id LIMIT 2000) AS first
          WHERE strpos(folded, v_needle) > 0 LIMIT p_limit) AS hit;
    IF coalesce(cardinality(v_ids), 0) < p_limit THEN
        IF v_needle COLLATE "default" ~ '[[:alnum:]]{3}' THEN
            v_pattern := '%' || replace(replace(replace(v_needle, '\', '\\'), '%', '\%'), '_', '\_') || '%';
            SELECT array_agg(id ORDER BY name, id) INTO v_ids
            FROM files WHERE user_id = p_account AND deleted_at IS NULL AND drive_fold(name) LIKE v_pattern;
            v_ids := v_ids[:p_limit];
        ELSE
            SELECT array_agg(id) INTO v_ids
            FROM (SELECT id FROM files WHERE user_id COLLATE "C" = p_account AND deleted_at IS NULL AND strpos(drive_fold(name), v_needle) > 0
                  ORDER BY name, id LIMIT p_limit) AS hit;
        END IF;
    END IF;
    RETURN QUERY SELECT f.* FROM unnest(v_ids) AS hit JOIN files f ON f.id = hit;
END $$;
