//! How a pool's room is shared among its types.
//!
//! Base of floor 5: imports nothing.

/// A type that may have due rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asker {
    /// Its position.
    pub(super) who: usize,
    /// Lower first.
    pub(super) priority: i8,
    /// The most it may take.
    pub(super) room: usize,
}

/// Gives `room` to the askers in the order of their priority, evenly among equals, the remainder
/// rotating with `turn`. Whoever leaves room is found out by the claim, and the room is asked for
/// again.
pub(super) fn share(room: usize, mut askers: Vec<Asker>, turn: usize) -> Vec<(usize, usize)> {
    askers.retain(|asker| asker.room > 0);
    askers.sort_by_key(|asker| (asker.priority, asker.who));
    let mut left = room;
    let mut given = Vec::new();
    for equals in askers.chunk_by_mut(|a, b| a.priority == b.priority) {
        if left == 0 {
            break;
        }
        let count = equals.len();
        equals.rotate_left(turn % count);
        // Those with the least room first: what they leave is shared among the others. The sort is
        // stable, so the rotation decides among the rest who gets the remainder.
        equals.sort_by_key(|asker| asker.room.min(left));
        for (served, asker) in equals.iter().enumerate() {
            let part = left.div_ceil(count - served).min(asker.room);
            if part > 0 {
                given.push((asker.who, part));
                left -= part;
            }
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn askers(rooms: &[(i8, usize)]) -> Vec<Asker> {
        rooms
            .iter()
            .enumerate()
            .map(|(who, &(priority, room))| Asker { who, priority, room })
            .collect()
    }

    fn sorted(mut given: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
        given.sort_unstable();
        given
    }

    #[test]
    fn equals_share_evenly_and_the_remainder_rotates() {
        let all = usize::MAX;
        let three = askers(&[(0, all), (0, all), (0, all)]);
        assert_eq!(sorted(share(10, three.clone(), 0)), [(0, 4), (1, 3), (2, 3)]);
        assert_eq!(sorted(share(10, three.clone(), 1)), [(0, 3), (1, 4), (2, 3)]);
        assert_eq!(sorted(share(2, three, 2)), [(0, 1), (2, 1)]);
    }

    #[test]
    fn a_higher_type_is_served_first() {
        let given = share(4, askers(&[(5, usize::MAX), (-5, 3)]), 0);
        assert_eq!(sorted(given), [(0, 1), (1, 3)]);
    }

    #[test]
    fn room_that_a_limit_leaves_goes_to_the_others() {
        let given = share(10, askers(&[(0, 1), (0, usize::MAX), (0, 0)]), 0);
        assert_eq!(sorted(given), [(0, 1), (1, 9)]);
    }
}
