//! Decompression bombs: a few bytes that would become many.

use super::super::*;
use super::body::{gzip, limited, raw_deflate, zlib, zstd_frame};

/// Makes a brotli stream of zeros, 16 MiB for each of its meta-blocks: one literal, and a copy of it (RFC 7932, 9).
fn brotli_bomb(blocks: usize) -> Vec<u8> {
    // Values, and the number of bits of each.
    let block: [(u32, u32); 16] = [
        // Not the last one; its length minus 1 has 6 nibbles; compressed.
        (0, 1),
        (2, 2),
        ((1 << 24) - 1, 24),
        (0, 1),
        // One type of block each for literals, commands and distances.
        (0, 3),
        // No bits behind distances and no direct ones; the context mode of literals; one tree each.
        (0, 6),
        (0, 2),
        (0, 2),
        // Prefix codes with one symbol, which then needs no bits: the literal 0.
        (1, 2),
        (0, 10),
        // The command that inserts 1 literal and copies 2118 bytes and more.
        (1, 2),
        (399 << 2, 12),
        // The distances of 1 and 2.
        (1, 2),
        (16 << 2, 8),
        // The command: all bytes of the block but the literal.
        ((1 << 24) - 1 - 2118, 24),
        // The distance: 1.
        (0, 1),
    ];
    // The window has 16 bits. The last meta-block is empty.
    let begin = [(0, 1)];
    let end = [(3, 2)];
    let fields = begin
        .into_iter()
        .chain(std::iter::repeat_n(block, blocks).flatten())
        .chain(end);
    let bits: Vec<u8> = fields
        .flat_map(|(value, count)| (0..count).map(move |bit| u8::from((value >> bit) & 1 == 1)))
        .collect();
    // The first bit is the lowest one of its byte.
    bits.chunks(8)
        .map(|byte| byte.iter().rev().fold(0, |all, bit| (all << 1) | bit))
        .collect()
}

/// Fails if a decompression bomb, also one within another stream, is expanded beyond the limit or the ratio.
#[test]
fn bombs_do_not_go_off() {
    let zeros = vec![0; 32 << 20];
    let bombs = [
        ("gzip", gzip(&zeros)),
        ("deflate", zlib(&zeros)),
        ("deflate", raw_deflate(&zeros)),
        ("br", brotli_bomb(2)),
        ("zstd", zstd_frame(&zeros)),
    ];
    for (name, bomb) in bombs {
        let header = format!("Content-Encoding: {name}");
        let unlimited = DecodeLimits {
            ratio: u64::MAX,
            ..DecodeLimits::default()
        };
        let (out, error, notes) = limited(&header, &bomb, unlimited);
        assert!(out == zeros, "{name}: {} bytes, {error:?}", out.len());
        assert_eq!((error, notes), (None, vec![]), "{name}");
        let (out, error, _) = limited(
            &header,
            &bomb,
            DecodeLimits {
                output: 1_000_000,
                ..DecodeLimits::default()
            },
        );
        assert!(
            matches!(
                error,
                Some(BodyError::TooLarge {
                    limit: 1_000_000,
                    ..
                })
            ),
            "{name} {error:?}"
        );
        assert!(out.len() <= 1_000_000);
        let (_, error, _) = limited(
            &header,
            &bomb,
            DecodeLimits {
                ratio: 50,
                ..DecodeLimits::default()
            },
        );
        assert!(
            matches!(error, Some(BodyError::TooLarge { .. })),
            "{name} {error:?}"
        );
        // A stream in another one: the inner stream is a bomb of its own.
        let (_, error, _) = limited(
            &format!("{header}, gzip"),
            &gzip(&bomb),
            DecodeLimits {
                output: 1 << 20,
                ..DecodeLimits::default()
            },
        );
        assert!(
            matches!(error, Some(BodyError::TooLarge { .. })),
            "{name} {error:?}"
        );
    }
}
