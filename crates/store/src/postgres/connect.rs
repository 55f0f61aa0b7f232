//! Connections to PostgreSQL.
