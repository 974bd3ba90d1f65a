//! Scanner, identity, rotation and reader of files
