use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;
use crate::secret::SecretValue;

fn values(secrets: &[&str]) -> Arc<Values> {
    let secrets: Vec<SecretValue> = secrets.iter().map(|secret| SecretValue::new(*secret).unwrap()).collect();
    Values::new(&secrets).unwrap()
}

fn redact(secrets: &[&str], text: &str) -> String {
    String::from_utf8_lossy(&Redactor::whole(&values(secrets), text.as_bytes())).into_owned()
}

fn spelled(text: &str, byte: impl Fn(u8) -> String) -> String {
    text.bytes().map(byte).collect::<Vec<_>>().concat()
}

/// Characters without an order, the same for the same seed.
fn noise(seed: u32, len: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(ALPHABET[(state >> 26) as usize])
    };
    (0..len).map(|_| next()).collect()
}

/// Feeds the text in two pieces, for every place where it can be cut, and byte by byte.
fn assert_same_at_every_border(values: &Arc<Values>, text: &[u8]) {
    let whole = Redactor::whole(values, text);
    for cut in 0..=text.len() {
        let mut redactor = Redactor::new(Arc::clone(values));
        let mut out = Vec::new();
        redactor.push(&text[..cut], &mut out);
        redactor.push(&text[cut..], &mut out);
        redactor.finish(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole), "cut at {cut}");
    }
    let mut redactor = Redactor::new(Arc::clone(values));
    let mut out = Vec::new();
    for byte in text {
        redactor.push(&[*byte], &mut out);
    }
    redactor.finish(&mut out);
    assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole), "byte by byte");
}

#[test]
fn a_value_is_found_in_all_its_forms() {
    let secret = "p@ss w/rd\"ü\\x9";
    let forms = [
        secret.to_owned(),
        "p%40ss%20w%2Frd%22%C3%BC%5Cx9".to_owned(),
        "p%40ss+w%2frd%22%c3%bc%5cx9".to_owned(),
        "p@ss%20w/rd%22%C3%BC%5Cx9".to_owned(),
        serde_json::to_string(secret).unwrap().trim_matches('"').to_owned(),
        "p@ss w\\/rd\\\"\\u00fc\\\\x9".to_owned(),
        spelled(secret, |byte| format!("{byte:02x}")),
        spelled(secret, |byte| format!("{byte:02X}")),
    ];
    for form in forms {
        assert_eq!(redact(&[secret], &format!("a {form} b")), "a [redacted] b", "{form}");
    }
}

#[test]
fn base64_is_found_at_every_offset_in_both_alphabets_and_wrapped() {
    let secret = "s3cr3t~value?with>signs";
    for prefix in ["", "a", "ab", "abc", "user:"] {
        for suffix in ["", "x", "xy", "xyz"] {
            let text = format!("{prefix}{secret}{suffix}");
            for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let wrapped = format!("{}\n{}", &encoded[..12], &encoded[12..]);
                for form in [encoded, wrapped] {
                    let out = redact(&[secret], &form);
                    assert!(out.contains(MARK), "{prefix}|{suffix}: {out}");
                    let rest: String = out.replace(MARK, "");
                    assert!(rest.len() <= form.len() - secret.len(), "{out}");
                }
            }
        }
    }
}

#[test]
fn of_two_values_the_longer_is_taken() {
    assert_eq!(redact(&["abcd", "abcdefgh"], "abcdefgh abcd abcdefg"), "[redacted] [redacted] [redacted]efg");
}

#[test]
fn of_values_that_overlap_nothing_is_shown() {
    for (secrets, text, expected) in [
        (&["hunter-alpha", "alpha-omega"][..], "x hunter-alpha-omega y", "x [redacted] y"),
        // The one that ends last begins last, and is found while another one waits for more.
        (&["abcdefghXX", "cdefgh", "ghijkl"], "abcdefghijkl.", "ab[redacted]."),
        (&["hunter-alpha", "alpha-omega"], "hunter%2Dalph\\u0061-omega", MARK),
        (&["abcabc"], "abcabcabcab", "[redacted]ab"),
        (&["abcd"], "abcdabcd", "[redacted][redacted]"),
    ] {
        assert_eq!(redact(secrets, text), expected, "{text}");
        assert_same_at_every_border(&values(secrets), text.as_bytes());
    }
}

#[test]
fn a_line_of_a_long_secret_and_a_value_with_a_line_end_are_found() {
    let key = "first-line-of-a-key\nsecond-line-of-a-key\n";
    assert_eq!(redact(&[key], "    second-line-of-a-key"), "    [redacted]");
    assert_eq!(redact(&["hunter22\n"], "x hunter22 y"), "x [redacted] y");
}

#[test]
fn short_lines_of_a_secret_go_with_the_whole_of_it_and_stay_in_other_text() {
    let secret = "ann\n{ 4711\n}\n\nhunter22\n";
    for (text, expected) in [
        (secret, "[redacted]\n"),
        ("x ann\r\n{ 4711\r\n}\r\n\r\nhunter22\r\n", "x [redacted]\r\n"),
        ("doc: |\n  ann\n  { 4711\n  }\n\n  hunter22\nend", "doc: |\n  [redacted]\nend"),
        ("\tann\n\t{ 4711\n\t}\n\n\thunter22", "\t[redacted]"),
        (r#"{"a":"ann\r\n{ 4711\r\n}\r\n\r\nhunter22"}"#, r#"{"a":"[redacted]"}"#),
        ("ann%0D%0A%7B%204711%0D%0A%7D%0D%0A%0D%0Ahunter22", "[redacted]"),
        ("it is hunter22 again", "it is [redacted] again"),
        ("ann has {\n}\n\n", "ann has {\n}\n\n"),
    ] {
        assert_eq!(redact(&[secret], text), expected);
        assert_same_at_every_border(&values(&[secret]), text.as_bytes());
    }
    let windows = secret.replace('\n', "\r\n");
    assert_eq!(redact(&[&windows], secret), "[redacted]\n");
}

const CONFIGURATION: &str = "user: bob\npassword: \"tr0ub4dor&3\"\nhost: db.internal\n";
const CONFIGURATION_LINE: &str = "password: \"tr0ub4dor&3\"";

#[test]
fn a_line_of_a_secret_is_found_encoded() {
    let hex = spelled(CONFIGURATION_LINE, |byte| format!("{byte:02x}"));
    let padded = STANDARD.encode(CONFIGURATION_LINE);
    assert_eq!(padded, "cGFzc3dvcmQ6ICJ0cjB1YjRkb3ImMyI=");
    for (form, expected) in [
        (hex.clone(), MARK.to_owned()),
        (hex.to_uppercase(), MARK.to_owned()),
        (padded.clone(), MARK.to_owned()),
        (padded.trim_end_matches('=').to_owned(), MARK.to_owned()),
        (padded.replace('=', "%3D"), MARK.to_owned()),
        (padded.replace('=', "\\u003d"), MARK.to_owned()),
        (URL_SAFE_NO_PAD.encode(CONFIGURATION_LINE), MARK.to_owned()),
        // The last character here is of the line end alone.
        (STANDARD.encode(format!("{CONFIGURATION_LINE}\n")), format!("{MARK}K")),
        (format!("{}\n    {}", &padded[..20], &padded[20..]), MARK.to_owned()),
        (format!("{}\n    {}", &hex[..20], &hex[20..]), MARK.to_owned()),
    ] {
        let text = format!("a {form} b");
        assert_eq!(redact(&[CONFIGURATION], &text), format!("a {expected} b"), "{form}");
        assert_same_at_every_border(&values(&[CONFIGURATION]), text.as_bytes());
    }
    let of_short_line = format!("a {} b", STANDARD.encode("user: b"));
    assert_eq!(redact(&["user: b\npassword: hunter22"], &of_short_line), of_short_line);
}

#[test]
fn a_line_of_a_secret_is_found_inside_an_encoded_text() {
    for prefix in ["", "x", "xy", "xyz"] {
        for suffix in ["", "\n", "z", "zz"] {
            for encoding in [&STANDARD, &URL_SAFE_NO_PAD] {
                let form = encoding.encode(format!("{prefix}{CONFIGURATION_LINE}{suffix}"));
                let out = redact(&[CONFIGURATION], &form);
                assert!(out.contains(MARK), "{prefix}|{suffix}: {out}");
                // What is left is of the text around it.
                assert!(out.replace(MARK, "").len() <= 10, "{prefix}|{suffix}: {out}");
            }
        }
    }
}

#[test]
fn encoded_forms_are_found_wrapped_and_indented() {
    let secret = noise(1, 152);
    let forms = [
        STANDARD.encode(&secret),
        STANDARD.encode(&secret).trim_end_matches('=').to_owned(),
        URL_SAFE_NO_PAD.encode(&secret),
        spelled(&secret, |byte| format!("{byte:02x}")),
        spelled(&secret, |byte| format!("{byte:02X}")),
    ];
    let looked_for = values(&[&secret]);
    let redact = |text: &str| String::from_utf8(Redactor::whole(&looked_for, text.as_bytes())).unwrap();
    for form in &forms {
        for width in [1, 20, 60, 64, 76] {
            let lines: Vec<&str> = form.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
            for indent in ["", " ", "    ", "\t", &" ".repeat(16)] {
                for line_end in ["\n", "\r\n", "\\n", "\\r\\n", "%0A", "%0d%0a"] {
                    let between = format!("{line_end}{indent}");
                    let text = format!("key: |{between}{}{line_end}next: 1", lines.join(&between));
                    let expected = format!("key: |{between}{MARK}{line_end}next: 1");
                    assert_eq!(redact(&text), expected, "{width}");
                }
            }
            let too_far = lines.join(&format!("\n{}", " ".repeat(17)));
            assert_eq!(redact(&too_far), too_far);
        }
    }
}

#[test]
fn a_long_key_costs_a_look_at_most_places() {
    let body = noise(1, 3_200);
    let lines: Vec<&str> = (0..50).map(|line| &body[64 * line..][..64]).collect();
    let looked_for = values(&[&lines.join("\n")]);
    for line in &lines {
        for form in [STANDARD.encode(line), spelled(line, |byte| format!("{byte:02x}"))] {
            assert_eq!(Redactor::whole(&looked_for, form.as_bytes()), MARK.as_bytes(), "{form}");
        }
    }
    let printed = noise(2, 100_000);
    let dumped = spelled(&printed, |byte| format!("{byte:02x}"));
    for text in [printed, dumped] {
        let begun = (0..text.len()).filter(|at| looked_for.may_begin(&text.as_bytes()[*at..])).count();
        assert!(begun < text.len() / 10, "{begun} of {}", text.len());
    }
}

#[test]
fn what_looks_like_a_secret_is_taken_out() {
    let key = |begin: &str, len: usize| format!("{begin}{}", "A1".repeat(len / 2));
    let block = format!("-----BEGIN RSA {}-----\nabc\ndef\n-----END RSA {}-----\nafter", "PRIVATE KEY", "PRIVATE KEY");
    for (text, expected) in [
        (key("id AKIA", 16) + " ok", "id [redacted] ok".to_owned()),
        (key("ghp_", 36), MARK.to_owned()),
        (key("Authorization: Bearer ", 20) + "\n", format!("Authorization: Bearer {MARK}\n")),
        (key("eyJ", 10) + "." + &key("", 10) + "." + &key("", 10), MARK.to_owned()),
        ("password=hunter2&user=a".to_owned(), format!("password={MARK}&user=a")),
        ("{\"password\": \"hunter2\"}".to_owned(), format!("{{\"password\": \"{MARK}\"}}")),
        ("postgres://me:hunter2@db/x".to_owned(), format!("postgres://me:{MARK}@db/x")),
        (format!("before\n{block}"), format!("before\n{MARK}\nafter")),
    ] {
        assert_eq!(redact(&[], &text), expected);
        assert_same_at_every_border(&values(&[]), text.as_bytes());
    }
}

#[test]
fn ordinary_output_stays_as_it_is() {
    for text in [
        "AKIA is short, xAKIAABCDEFGHIJKLMNOP is a word\n",
        "see https://example.org:8080/path?x=1#y and ssh://git@host/x",
        "bearer of news, BEGIN PRIVATE, 100 % done\r\n",
        "ünïcödé ✓ \u{1F600}",
        "",
    ] {
        assert_eq!(redact(&["hunter22"], text), text);
    }
}

#[test]
fn ambiguous_spellings_cost_little() {
    let secret = "\\".repeat(2_000);
    let out = redact(&[&secret], &"\\".repeat(3_999));
    assert!(out.starts_with(MARK), "{}", out.len());
}

#[test]
fn nothing_is_held_back_for_good() {
    let values = values(&["hunter22"]);
    let mut redactor = Redactor::new(Arc::clone(&values));
    let mut out = Vec::new();
    redactor.push(b"progress ....... 50/100", &mut out);
    assert_eq!(out, b"progress ....... 50/100");
    redactor.push(b"hunt", &mut out);
    assert_eq!(out.len(), 23, "the beginning of a value waits");
    redactor.finish(&mut out);
    assert!(out.ends_with(b"hunt"));
}

/// What is left of a text in which only the values themselves can stand, by looking at every place for every one.
fn without_values(secrets: &[String], text: &str) -> String {
    let mut out = String::new();
    let mut covered_to = 0;
    for at in 0..text.len() {
        let ends =
            secrets.iter().filter(|secret| text[at..].starts_with(secret.as_str())).map(|secret| at + secret.len());
        if let Some(end) = ends.max() {
            if covered_to <= at {
                out.push_str(MARK);
            }
            covered_to = covered_to.max(end);
        }
        if covered_to <= at {
            out.push_str(&text[at..=at]);
        }
    }
    out
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{4,8}", "[ab]{4,6}", "[%2F/+ \"\\\\a]{4,8}", "\\PC{4,10}"]
        .prop_filter("a secret has some length", |secret| secret.trim().len() >= 4)
}

/// Text with secrets, halves of secrets and their forms in it.
fn text_with(secrets: Vec<String>) -> impl Strategy<Value = (Vec<String>, String)> {
    let pieces: Vec<String> = secrets
        .iter()
        .flat_map(|secret| {
            let half: String = secret.chars().take(secret.chars().count() / 2).collect();
            let json = serde_json::to_string(secret).unwrap();
            let url = spelled(secret, |byte| format!("%{byte:02X}"));
            let encoded = STANDARD.encode(secret);
            [secret.clone(), half, json, url, encoded]
        })
        .chain(["password=x1 ".to_owned(), "a://b:c@d ".to_owned(), "eyJ".to_owned(), " ".to_owned(), "\n".to_owned()])
        .collect();
    let text = prop::collection::vec(prop_oneof![prop::sample::select(pieces), "[ab%+\\\\]{0,3}"], 0..8);
    text.prop_map(move |pieces| (secrets.clone(), pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_borders_of_chunks_change_nothing(
        (secrets, text) in prop::collection::vec(secret(), 1..3).prop_flat_map(text_with)
    ) {
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        assert_same_at_every_border(&values(&secrets), text.as_bytes());
    }

    #[test]
    fn every_byte_of_every_value_is_covered(
        secrets in prop::collection::vec("[xyz]{4,7}", 1..4),
        text in "[xyz]{0,40}"
    ) {
        let listed: Vec<&str> = secrets.iter().map(String::as_str).collect();
        prop_assert_eq!(redact(&listed, &text), without_values(&secrets, &text));
        assert_same_at_every_border(&values(&listed), text.as_bytes());
    }

    #[test]
    fn no_value_is_left(
        (secrets, text) in prop::collection::vec("[a-zA-Z0-9%/+]{6,12}", 1..3).prop_flat_map(text_with)
    ) {
        let listed: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let out = redact(&listed, &text).replace(MARK, "\u{1}");
        for secret in &secrets {
            prop_assert!(!out.contains(secret.as_str()), "{out}");
        }
    }
}
