//! JSON patch, merge patch and strategic merge patch as the API server applies them.
