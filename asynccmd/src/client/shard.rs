//! The shard of a command: a stable hash, so that every version and every program finds the same.
//!
//! FNV-1a with 64 bits over the bytes of the key (offset basis `cbf29ce484222325`, prime
//! `100000001b3`), its two halves xored, mod 64. `DefaultHasher` may change with any compiler.

/// How many shards there are.
const SHARDS: u64 = 64;

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The shard of a key.
pub(super) fn of(key: &[u8]) -> u8 {
    let hash = fnv1a(key);
    ((hash ^ (hash >> 32)) % SHARDS) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_has_its_published_vectors() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv1a(text.as_bytes()), hash, "{text}");
        }
    }

    /// Rows in databases have these: a change here is a change of the storage format.
    #[test]
    fn shards_never_change() {
        for (key, shard) in [("", 1), ("a", 0), ("foobar", 25), ("order:42", 55)] {
            assert_eq!(of(key.as_bytes()), shard, "{key}");
        }
    }

    #[test]
    fn numbered_keys_spread_evenly() {
        let mut counts = [0u32; SHARDS as usize];
        for number in 0..64_000 {
            counts[usize::from(of(format!("order:{number}").as_bytes()))] += 1;
        }
        assert!(counts.iter().all(|count| (800..=1_200).contains(count)), "{counts:?}");
    }
}
