//! Field ownership: field sets, typed merge, managers; what server-side apply is.
