//! The command line of Stanchion.

fn main() {}
