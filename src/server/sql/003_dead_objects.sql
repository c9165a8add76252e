-- Objects that no row named and that the sweeper deletes. A commit can come later than anybody believes: Postgres stood
-- still, or the server that asked for it is long dead. It must not name an object that is gone.
CREATE TABLE dead_objects (
    path text PRIMARY KEY,
    at   timestamptz NOT NULL DEFAULT now()
);
