//! Names of users and groups, as the system resolves them (`/etc/passwd`, or its name service).

use nix::unistd::{Gid, Group, Uid, User};
use std::io;

/// The name of a user; `None` if the system knows none. May query a service over the network.
pub fn user_name(uid: u32) -> io::Result<Option<String>> {
    let user = User::from_uid(Uid::from_raw(uid)).map_err(io::Error::from)?;
    Ok(user.map(|user| user.name))
}

/// The name of a group; `None` if the system knows none. May query a service over the network.
pub fn group_name(gid: u32) -> io::Result<Option<String>> {
    let group = Group::from_gid(Gid::from_raw(gid)).map_err(io::Error::from)?;
    Ok(group.map(|group| group.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_name_and_a_number_that_nobody_has_has_none() {
        assert_eq!(user_name(0).expect("there is a name service").as_deref(), Some("root"));
        assert_eq!(group_name(0).expect("there is a name service").as_deref(), Some("root"));
        assert_eq!(user_name(4_000_000_000).expect("there is a name service"), None);
    }
}
