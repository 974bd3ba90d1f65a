//! Which providers get requests.

use super::*;

#[test]
fn the_variable_beats_the_configuration_and_that_the_default() {
    let configured = ["gcp".to_owned(), "ecs".to_owned()];
    let both = vec![Provider::Gcp, Provider::Alibaba];
    for (configured, variable, providers) in [
        (None, None, Provider::DEFAULT.to_vec()),
        (Some(&[][..]), None, Provider::DEFAULT.to_vec()),
        (Some(&configured[..]), None, both),
        (Some(&configured[..]), Some("aws, ec2 ,hetzner"), vec![Provider::Aws, Provider::Hetzner]),
        (Some(&configured[..]), Some(""), vec![]),
        (None, Some("nonsense"), vec![]),
    ] {
        assert_eq!(chosen(configured, variable), providers, "{configured:?} {variable:?}");
    }
}
