//! Structural schemas of CustomResourceDefinitions: check, prune, default, validate, ratchet.
