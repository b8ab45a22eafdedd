//! A revisioned key-value store with watch: durable and embedded.
