//! Messages and what is read of them; most are those of Filebeat's own tests.

use super::*;
use proptest::prelude::*;

type Read = (Option<i64>, Vec<String>, Vec<(String, String)>, Vec<String>);

/// The message as a text: version, header, extensions, errors.
fn read(text: &str) -> Read {
    let bytes = text.as_bytes();
    let message = Message::parse(bytes);
    let plain =
        |value: &Text| String::from_utf8(value.unescape(bytes, &mut Vec::new()).to_vec()).unwrap();
    let header = message.header.iter().map(&plain).collect();
    let pair =
        |extension: &Extension| (text[extension.key.clone()].to_owned(), plain(&extension.value));
    let extensions = message.extensions.iter().map(pair).collect();
    let errors = message.errors.iter().map(ToString::to_string).collect();
    (message.version, header, extensions, errors)
}

fn extensions(text: &str) -> Vec<(String, String)> {
    read(&format!("CEF:0|v|p|1|2|n|10|{text}")).2
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_message_is_cut_into_header_and_extensions() {
    let (version, header, extensions, errors) = read(
        "CEF:26|security|threatmanager|1.0|100|trojan successfully stopped|10|src=10.0.0.192 dst=12.121.122.82 spt=1232",
    );
    assert_eq!(version, Some(26));
    let expected = ["security", "threatmanager", "1.0", "100", "trojan successfully stopped", "10"];
    assert_eq!(header, expected);
    assert_eq!(
        extensions,
        pairs(&[("src", "10.0.0.192"), ("dst", "12.121.122.82"), ("spt", "1232")])
    );
    assert_eq!(errors, [""; 0]);
}

#[test]
fn extensions_may_be_missing_and_parts_of_the_header_empty() {
    let (version, header, extensions, errors) = read("CEF:0|||||||");
    assert_eq!((version, header), (Some(0), vec![String::new(); 6]));
    assert!(extensions.is_empty() && errors.is_empty());
    assert_eq!(read("CEF:0|||||||a=").3, [""; 0]);
}

#[test]
fn escapes_are_replaced() {
    let (_, header, extensions, errors) = read(
        r"CEF:0|security\\compliance|threat\|->manager|1.0|100|n=1|10|spt=1232 msg=Newlines\nare allowed.\r\nfeeds\\newlines\\\=.",
    );
    assert_eq!(header[0], r"security\compliance");
    assert_eq!(header[1], "threat|->manager");
    assert_eq!(header[4], "n=1");
    let message = "Newlines\nare allowed.\r\nfeeds\\newlines\\=.";
    assert_eq!(extensions, pairs(&[("spt", "1232"), ("msg", message)]));
    assert_eq!(errors, [""; 0]);
}

#[test]
fn a_value_goes_on_until_a_space_and_a_key() {
    assert_eq!(extensions(" src=1 dst= spt=2"), pairs(&[("src", "1"), ("dst", ""), ("spt", "2")]));
    assert_eq!(extensions("moo=this|has an pipe"), pairs(&[("moo", "this|has an pipe")]));
    assert_eq!(extensions(r"msg=a+b\=c x=c\\d\=z"), pairs(&[("msg", "a+b=c"), ("x", r"c\d=z")]));
    let padded = "spt=1232 msg=Trailing  space    src=10.0.0.192 ";
    let expected = [("spt", "1232"), ("msg", "Trailing  space   "), ("src", "10.0.0.192")];
    assert_eq!(extensions(padded), pairs(&expected));
    assert_eq!(extensions("msg=Trailing\t \r\n"), pairs(&[("msg", "Trailing")]));
    let tabs = "msg=Tabs\tand\rcontrol\ncharacters\t src=127.0.0.1";
    let expected = [("msg", "Tabs\tand\rcontrol\ncharacters\t"), ("src", "127.0.0.1")];
    assert_eq!(extensions(tabs), pairs(&expected));
    let keys = "ad.field[0]=a ad.Error_,Code=b _x=";
    assert_eq!(extensions(keys), pairs(&[("ad.field[0]", "a"), ("ad.Error_,Code", "b")]));
}

#[test]
fn a_value_that_is_wrong_is_left_out_and_the_next_key_found() {
    let (_, _, extensions, errors) = read(
        "CEF:0|v|p|1|2|n|2|request='https://foo/1' requestClientApplication='Foo; =Email:user@example.com; Guid:test=' cs1= cs1Label=Foo Bar",
    );
    let expected = [("request", "'https://foo/1'"), ("cs1", ""), ("cs1Label", "Foo Bar")];
    assert_eq!(extensions, pairs(&expected));
    assert_eq!(errors, ["malformed value for requestClientApplication at pos 74"]);

    let (_, _, extensions, errors) = read(
        "CEF:0|v|p|1|2|n|Very-High| msg=Hello World error=Failed because id==old_id user=root angle=106.7<=180",
    );
    let expected = [("msg", "Hello World"), ("error", "Failed because"), ("user", "root")];
    assert_eq!(extensions, pairs(&expected));
    let expected = [
        "malformed value for id at pos 68",
        "malformed value for angle at pos 98",
        "unexpected end of CEF event",
    ];
    assert_eq!(errors, expected);

    let (_, _, extensions, errors) = read(
        "CEF:0|Trend Micro|Deep Security Manager|1.2.3|600|User Signed In|Low|msg=User signed in with =xyz",
    );
    assert!(extensions.is_empty());
    assert_eq!(errors, ["malformed value for msg at pos 94", "unexpected end of CEF event"]);

    let (_, _, extensions, errors) = read(r"CEF:0|||||||key1=\\hi= key2=a");
    assert_eq!(extensions, pairs(&[("key2", "a")]));
    assert_eq!(errors, ["malformed value for key1 at pos 22"]);
}

#[test]
fn escapes_that_there_are_not_make_a_value_wrong() {
    let (_, _, extensions, errors) = read(r"CEF:0|||||||moo=this\|has an escaped pipe");
    assert!(extensions.is_empty());
    assert_eq!(errors, ["malformed value for moo at pos 22", "unexpected end of CEF event"]);
    assert_eq!(read(r"CEF:0|||||||a=b\").3.len(), 2);
}

#[test]
fn a_tab_is_no_separator() {
    let (_, _, extensions, errors) = read("CEF:0|||||||spt=1232 msg=no separator\tsrc=127.0.0.1");
    assert_eq!(extensions, pairs(&[("spt", "1232")]));
    assert_eq!(errors.len(), 2);
}

#[test]
fn of_a_header_that_is_not_complete_its_parts_and_the_extensions_count() {
    let (version, header, extensions, errors) =
        read("CEF:0|SentinelOne|Mgmt|activityID=111 accountName=foo-bar mdr scope=ACCOUNT");
    assert_eq!(version, Some(0));
    assert_eq!(header, ["SentinelOne", "Mgmt", "", "", "", ""]);
    let expected = [("activityID", "111"), ("accountName", "foo-bar mdr"), ("scope", "ACCOUNT")];
    assert_eq!(extensions, pairs(&expected));
    assert_eq!(errors, ["unexpected end of CEF event", "incomplete CEF header"]);
}

#[test]
fn what_cannot_be_read_says_where() {
    let errors = |text| read(text).3;
    assert_eq!(errors("CEF:x|"), ["error in CEF event at pos 5"]);
    assert_eq!(errors("CEF:0x"), ["error in CEF event at pos 6"]);
    assert_eq!(errors("CEF:"), ["unexpected end of CEF event", "incomplete CEF header"]);
    assert_eq!(read("CEF:0").0, None);
    assert_eq!(errors(r"CEF:0|a\b|"), ["error in CEF event at pos 9"]);
    assert_eq!(errors("CEF:0||||||Very High|a=b"), ["error in CEF event at pos 16"]);
    assert_eq!(errors("CEF:0|||||||hello world"), ["error in CEF event at pos 18"]);
    assert_eq!(errors("CEF:0|||||||hello"), ["unexpected end of CEF event"]);
    assert_eq!(read("CEF:99999999999999999999|").0, Some(i64::MAX));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "CEF:0?[|a-c= \\\\n]{0,60}") {
        let message = Message::parse(text.as_bytes());
        for extension in &message.extensions {
            extension.value.unescape(text.as_bytes(), &mut Vec::new());
        }
    }

    #[test]
    fn what_was_escaped_is_read_back(values in proptest::collection::vec("[ a-z=|\\\\\n]{1,12}x", 1..6)) {
        let mut text = "CEF:1|v|p|1|c|n|s|".to_owned();
        for (at, value) in values.iter().enumerate() {
            let escaped = value.replace('\\', r"\\").replace('=', r"\=").replace('\n', r"\n");
            text.push_str(&format!("k{at}={escaped} "));
        }
        let (_, _, extensions, errors) = read(&text);
        prop_assert_eq!(errors, Vec::<String>::new());
        prop_assert_eq!(extensions.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), values);
    }
}
