//! Tests of a job's file and of the facts that stand in its archive files.

use super::*;

fn example() -> HarvestJob {
    let order = CrawlOrder::parse(
        "[queues]\nmax_bytes = \"1 MB\"\n[[credential]]\nhost = \"a.dk\"\nuser = \"u\"\npassword = \"hush\"\n",
    );
    let seeds = vec![Url::parse("http://a.dk/").unwrap()];
    let submitted = "2026-01-02T03:04:05.678Z".parse().unwrap();
    let mut job = HarvestJob::new(7, 3, submitted)
        .with_seeds(seeds)
        .with_order(order.unwrap());
    job.harvest_number = 2;
    job.collection = Some("national".parse().unwrap());
    job.harvest.name = "Høst <1> & \"2\"".to_owned();
    job.harvest.comments = " two\r\nlines\u{0}\u{ffff} ".to_owned();
    job.harvest.template = "default".to_owned();
    job.harvest.audience = "all".to_owned();
    job
}

/// Fails if a job that is resumed differs from the one that was begun.
#[test]
fn job_reads_back_equal() {
    let job = example();
    assert_eq!(HarvestJob::parse(&job.to_toml().unwrap()), Ok(job));
    let plain = HarvestJob::new(1, 0, Timestamp::UNIX_EPOCH);
    assert_eq!(HarvestJob::parse(&plain.to_toml().unwrap()), Ok(plain));
}

/// Fails if a damaged job is taken, or its place is not said.
#[test]
fn damaged_job_is_refused() {
    let text = example().to_toml().unwrap();
    for (from, to, key) in [
        ("id = 7", "id = -7", "id"),
        ("id = 7", "idd = 7", "idd"),
        ("national", "../x", "collection"),
        ("http://a.dk/", "a.dk", "seeds"),
        ("2026-01-02T", "2026-13-02T", "submitted"),
    ] {
        let error = HarvestJob::parse(&text.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.key.as_deref(), Some(key), "{error}");
        assert!(error.line.is_some(), "{error}");
    }
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        // Cut between two keys it may be a whole job with less in it; it must not end the process.
        drop(HarvestJob::parse(&text[..end]));
    }
}

/// Fails if a key of harvestInfo is missing, in another place or has another value.
#[test]
fn harvest_info_has_keys_of_netarchivesuite() {
    let expected = [
        ("version", "0.6"),
        ("jobId", "7"),
        ("channel", "FOCUSED"),
        ("harvestNum", "2"),
        ("origHarvestDefinitionID", "3"),
        ("maxBytesPerDomain", "1000000"),
        ("maxObjectsPerDomain", "-1"),
        ("templateName", "default"),
        ("origHarvestDefinitionName", "Høst <1> & \"2\""),
        ("origHarvestDefinitionComments", "two lines \u{ffff}"),
        ("harvestFilenamePrefix", "national-7-3"),
        ("jobSubmitDate", "2026-01-02T03:04:05Z"),
        ("audience", "all"),
    ];
    let expected = expected.map(|(key, value)| (key, value.to_owned()));
    assert_eq!(example().harvest_info(), expected);
    let (key, value) = example().warcinfo_fields().swap_remove(1);
    assert_eq!((key.as_str(), value.as_str()), ("harvestInfo.jobId", "7"));
}

/// Fails if a name breaks the XML, or a password is in it.
#[test]
fn harvest_info_xml_is_escaped() {
    let xml = example().harvest_info_xml();
    assert!(xml.starts_with(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<harvestInfo>\n  <version>0.6</version>\n"
    ));
    assert!(
        xml.ends_with("  <audience>all</audience>\n</harvestInfo>\n"),
        "{xml}"
    );
    assert!(
        xml.contains(
            "<origHarvestDefinitionName>Høst &lt;1&gt; &amp; \"2\"</origHarvestDefinitionName>"
        ),
        "{xml}"
    );
    assert!(xml.contains(">two lines \u{fffd}<"), "{xml}");
    assert!(!xml.contains("hush"), "{xml}");
}

/// Fails if a name of a collection makes a bad or ambiguous file name.
#[test]
fn bad_collection_is_refused() {
    for text in ["", "a-b", ".a", "_a", "a/b", "a b", "å", &"a".repeat(61)] {
        assert!(text.parse::<Collection>().is_err(), "{text}");
    }
    for text in ["a", "Netarkivet_2.0", &"a".repeat(60)] {
        assert_eq!(text.parse::<Collection>().unwrap().to_string(), text);
    }
}
