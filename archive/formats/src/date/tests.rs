//! Dates: which are read, which are refused, and that all of them are written as they were read.

use super::*;

fn strict(text: &str) -> Result<String, InvalidDate> {
    WarcDate::read_date(text, DateReading::Strict)
        .map(|d| format!("{} {:?}", d.time(), d.precision()))
}

fn lenient(text: &str) -> Result<String, InvalidDate> {
    WarcDate::read_date(text, DateReading::Lenient).map(|d| d.time().to_string())
}

/// Fails if a date of the standard is refused, or its precision is not remembered.
#[test]
fn every_precision_is_read() {
    let check = |text, expected: &str| assert_eq!(strict(text).as_deref(), Ok(expected), "{text}");
    check("2016", "2016-01-01T00:00:00Z Year");
    check("2016-02", "2016-02-01T00:00:00Z Month");
    check("2016-02-29", "2016-02-29T00:00:00Z Day");
    check("2016-01-11T23:24Z", "2016-01-11T23:24:00Z Minute");
    check("2016-01-11T23:24:25Z", "2016-01-11T23:24:25Z Second");
    check(
        "2016-01-11T23:24:25.4Z",
        "2016-01-11T23:24:25.4Z Fraction(1)",
    );
    check(
        "2016-01-11T23:24:25.412030900Z",
        "2016-01-11T23:24:25.4120309Z Fraction(9)",
    );
    check("0000", "0000-01-01T00:00:00Z Year");
    check(
        "9999-12-30T21:59:59.999Z",
        "9999-12-30T21:59:59.999Z Fraction(3)",
    );
}

/// Fails if the strict reading accepts a day or a second that does not exist, or the error names another part or
/// position.
#[test]
fn invalid_date_says_why() {
    let range = |part, value| Err(InvalidDate::Range { part, value });
    assert_eq!(strict(""), Err(InvalidDate::Empty));
    assert_eq!(strict("2016-13-01"), range(DatePart::Month, 13));
    assert_eq!(strict("2016-00"), range(DatePart::Month, 0));
    assert_eq!(strict("2015-02-29"), range(DatePart::Day, 29));
    assert_eq!(strict("1900-02-29"), range(DatePart::Day, 29));
    assert_eq!(strict("2016-02-31T00:00:00Z"), range(DatePart::Day, 31));
    assert_eq!(strict("2016-02-01T24:00:00Z"), range(DatePart::Hour, 24));
    assert_eq!(strict("2016-02-01T23:60Z"), range(DatePart::Minute, 60));
    assert_eq!(strict("2016-02-01T23:59:60Z"), range(DatePart::Second, 60));
    assert_eq!(
        strict("2016-02-01T23:59:59.0123456789Z"),
        Err(InvalidDate::Fraction(10))
    );
    for (text, at) in [
        ("2016-02-01T23:59:59", 19),
        ("2016-02-01T23Z", 13),
        ("2016-02-01t23:59Z", 10),
        ("2016-02-01T23:59+01:00", 16),
        ("2016-02-01T23:59:59.Z", 20),
        ("2016-02-01T23:59:59ZZ", 20),
        ("20160201235959", 4),
        (" 2016", 0),
        ("2016-", 5),
        ("２０１６", 0),
    ] {
        assert_eq!(strict(text), Err(InvalidDate::Syntax { at }), "{text}");
    }
}

/// Fails if the lenient reading ignores the offset of a time zone, or refuses a timestamp of 12, 14 or 17 digits.
#[test]
fn the_lenient_reading_takes_what_files_have() {
    let check = |text, expected: &str| assert_eq!(lenient(text).as_deref(), Ok(expected), "{text}");
    check("2016-01-11T23:24:25+01:00", "2016-01-11T22:24:25Z");
    check("2016-01-11T23:24:25.5-0130", "2016-01-12T00:54:25.5Z");
    check("2016-01-11t23:24:25z", "2016-01-11T23:24:25Z");
    check("2016-01-11 23:24:25", "2016-01-11T23:24:25Z");
    check(" 20160111232425 ", "2016-01-11T23:24:25Z");
    check("20160111232425123", "2016-01-11T23:24:25.123Z");
    check("201601112324", "2016-01-11T23:24:00Z");
    check("2016", "2016-01-01T00:00:00Z");
    assert_eq!(lenient("0000-01-01T00:00+01:00"), Err(InvalidDate::Outside));
    assert_eq!(lenient("9999-12-31T23:59-01:00"), Err(InvalidDate::Outside));
    let offset = Err(InvalidDate::Range {
        part: DatePart::Offset,
        value: 24,
    });
    assert_eq!(lenient("2016-01-01T00:00+24:00"), offset);
    assert_eq!(lenient("2016010"), Err(InvalidDate::Digits(7)));
}

/// Fails if reading a date changes its text, or dates are ordered by their text instead of their time.
#[test]
fn the_text_is_kept_and_time_orders() {
    let read = |text| WarcDate::read_date(text, DateReading::Lenient).unwrap();
    assert_eq!(
        read("2016-01-11T23:24:25+01:00").as_str(),
        "2016-01-11T23:24:25+01:00"
    );
    assert_eq!(
        read("2016-01-11T22:24:25Z"),
        read("2016-01-11T23:24:25+01:00")
    );
    assert!(read("2016") < read("2016-01"));
    assert!(read("2016-01") < read("2016-01-01T00:00:00.1Z"));
    assert_eq!(read("9999-12-31T23:59:59Z").time(), Timestamp::MAX);
    assert_eq!(
        read("9999-12-31T23:59:59Z").stamp().to_string(),
        "99991231235959"
    );
    assert!(read("2015-12-31T23:59:59.999999999Z") < read("2016"));
}

/// Fails if our calendar has a day that the one of the crate `jiff` lacks, or lacks one, for example in 1900, or a date
/// changes when it is read back.
#[test]
fn every_day_around_1900_and_2000_goes_round() {
    let mut days = 0;
    for year in 1896..=2004_i16 {
        for month in 0..=13_i8 {
            for day in 0..=32_i8 {
                let text = format!("{year:04}{month:02}{day:02}235959");
                let read = text.parse::<Stamp>();
                let Ok(expected) = jiff::civil::Date::new(year, month, day) else {
                    assert!(read.is_err(), "{text}");
                    continue;
                };
                let stamp = read.unwrap_or_else(|error| panic!("{text}: {error}"));
                assert_eq!(stamp.civil_time(), expected.at(23, 59, 59, 0));
                assert_eq!(stamp.to_string(), text);
                assert_eq!(Stamp::from_time(stamp.time()), stamp);
                for precision in [Precision::Day, Precision::Minute, Precision::Second] {
                    let date = WarcDate::from_time(stamp.time(), precision);
                    assert_eq!(
                        strict(date.as_str()),
                        Ok(format!("{} {precision:?}", date.time()))
                    );
                }
                days += 1;
            }
        }
    }
    assert_eq!(days, 109 * 365 + 27);
}

/// Fails if a time before 1970 is rounded up to the next second, or a second or millisecond changes when it is read
/// back.
#[test]
fn every_second_and_every_millisecond_go_round() {
    for second in 0..86_400_i64 {
        let stamp = Stamp::from_time(Timestamp::from_second(second - 43_200).unwrap());
        assert_eq!(stamp.to_string().parse(), Ok(stamp));
    }
    for millis in -1500..1500_i64 {
        let time = Timestamp::from_millisecond(millis).unwrap();
        let stamp = Stamp::from_time_millis(time);
        assert_eq!(stamp.time(), time);
        assert_eq!(stamp.to_string().parse(), Ok(stamp));
        let whole = Stamp::from_time(time).time();
        assert!(whole <= time && time.as_millisecond() - whole.as_millisecond() < 1000);
    }
}

/// Fails if a fraction of a second is rounded up, or has more or fewer digits than its precision.
#[test]
fn every_fraction_goes_round() {
    let time = "2016-01-11T23:24:25.123456789Z"
        .parse::<Timestamp>()
        .unwrap();
    for n in 1..=9_u8 {
        let date = WarcDate::from_time(time, Precision::Fraction(n));
        assert_eq!(
            date.as_str(),
            format!("2016-01-11T23:24:25.{}Z", &"123456789"[..usize::from(n)])
        );
        assert_eq!(date.precision(), Precision::Fraction(n));
    }
}

/// Fails if a short timestamp of a query is filled to a day that does not exist, or misses the end of its month or
/// year.
#[test]
fn short_timestamps_are_filled() {
    let check = |text, first: &str, last: &str| {
        assert_eq!(
            Stamp::from_query(text, Fill::First).unwrap().to_string(),
            first,
            "{text}"
        );
        assert_eq!(
            Stamp::from_query(text, Fill::Last).unwrap().to_string(),
            last,
            "{text}"
        );
    };
    check("9999", "99990101000000", "99991231235959");
    check("2", "20000101000000", "29991231235959");
    check("199", "19900101000000", "19991231235959");
    check("2016", "20160101000000", "20161231235959");
    check("20160", "20160101000000", "20160930235959");
    check("20161", "20161001000000", "20161231235959");
    check("201602", "20160201000000", "20160229235959");
    check("2015022", "20150220000000", "20150228235959");
    check("20150401", "20150401000000", "20150401235959");
    check("201504012", "20150401200000", "20150401235959");
    check("20150401235958", "20150401235958", "20150401235958");
    for bad in [
        "",
        "20a",
        "201613",
        "20150230",
        "201504012400000",
        "2015040124",
    ] {
        assert!(Stamp::from_query(bad, Fill::First).is_err(), "{bad}");
    }
}

/// Fails if a cut or changed date makes the parser panic, or is kept with another text than was read.
#[test]
fn no_prefix_and_no_changed_byte_panics() {
    let good = b"2016-01-11T23:24:25.123+01:00";
    for cut in 0..=good.len() {
        for at in 0..cut {
            for byte in 0..=127_u8 {
                let mut bytes = good[..cut].to_vec();
                bytes[at] = byte;
                let text = String::from_utf8(bytes).unwrap();
                for reading in [DateReading::Strict, DateReading::Lenient] {
                    if let Ok(date) = WarcDate::read_date(&text, reading) {
                        assert_eq!(date.as_str(), text);
                    }
                }
                let _taken = Stamp::from_query(&text, Fill::Last).is_ok();
                let _taken = Stamp::from_arc(&text).is_ok();
            }
        }
    }
}
