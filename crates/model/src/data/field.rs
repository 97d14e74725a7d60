//! Arithmetic of parity: bytes as elements of GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1.
//!
//! Parity `j` of data `D_0, D_1, ...` is the sum of `2^(i*j) * D_i`: P is `j` = 0, Q is 1, R is 2. Any missing data can
//! be computed from the same number of parities. Source: the generator and polynomial of H. P. Anvin, "The mathematics
//! of RAID-6" (P and Q).

/// `a * b`.
pub fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        let carry = a & 0x80 != 0;
        a <<= 1;
        if carry {
            a ^= 0x1d;
        }
        b >>= 1;
    }
    product
}

/// `base^exponent`.
pub fn power(base: u8, exponent: u32) -> u8 {
    // The group has 255 elements.
    (0..exponent % 255).fold(1, |product, _| times(product, base))
}

/// `1 / a`, where `a` is not 0.
pub fn inverse(a: u8) -> u8 {
    power(a, 254)
}

/// The factor of data `i` in parity `j`.
pub fn coefficient(j: usize, i: usize) -> u8 {
    power(2, (i * j) as u32)
}

/// Adds each byte, multiplied by a factor, to another: `to += factor * from`.
pub fn fold(from: &[u8], to: &mut [u8], factor: u8) {
    if factor == 1 {
        to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from);
        return;
    }
    let mut table = [0; 256];
    (0..=255).for_each(|byte| table[usize::from(byte)] = times(factor, byte));
    let each = to.iter_mut().zip(from);
    each.for_each(|(to, from)| *to ^= table[usize::from(*from)]);
}

/// Returns factors that recover missing data (at most two, `a` and then `b`) from two parities, from which all other
/// data has been removed. The first pair of factors, applied to the first and the second parity and summed, gives `a`;
/// the second pair gives `b`.
pub fn two_missing(parities: [usize; 2], missing: [usize; 2]) -> [[u8; 2]; 2] {
    let [[a, b], [c, d]] = parities.map(|j| missing.map(|i| coefficient(j, i)));
    let scale = inverse(times(a, d) ^ times(b, c));
    [[d, b], [c, a]].map(|row| row.map(|it| times(it, scale)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By carry-less multiplication of polynomials and long division, independently of [`times`].
    fn by_division(a: u8, b: u8) -> u8 {
        let bits = (0..8).filter(|bit| b & (1 << bit) != 0);
        let mut product = bits.fold(0_u16, |sum, bit| sum ^ (u16::from(a) << bit));
        for degree in (8..16).rev() {
            if product & (1 << degree) != 0 {
                product ^= 0x11d << (degree - 8);
            }
        }
        product as u8
    }

    #[test]
    fn products_are_those_of_polynomials_and_inverses_invert() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(times(a, b), by_division(a, b), "{a} * {b}");
            }
            assert_eq!(power(2, 255), 1);
            if a != 0 {
                assert_eq!(times(a, inverse(a)), 1, "{a}");
            }
        }
        // 2 generates all elements: no two data have the same factor in Q.
        let mut seen: [bool; 256] = [false; 256];
        (0..255).for_each(|i| seen[usize::from(coefficient(1, i))] = true);
        assert_eq!(seen.iter().filter(|it| **it).count(), 255);
    }

    #[test]
    fn any_two_data_come_back_from_any_two_parities() {
        let data: [u8; 9] = [1, 0, 255, 7, 0x80, 0x1d, 3, 90, 200];
        let parity = |j: usize| {
            let each = data.iter().enumerate();
            each.fold(0, |sum, (i, &it)| sum ^ by_division(coefficient(j, i), it))
        };
        for parities in [[0, 1], [0, 2], [1, 2]] {
            for missing in (0..9).flat_map(|b| (0..b).map(move |a| [a, b])) {
                let left = parities.map(|j| {
                    let known = (0..9).filter(|i| !missing.contains(i));
                    known.fold(parity(j), |sum, i| sum ^ times(coefficient(j, i), data[i]))
                });
                let found = two_missing(parities, missing)
                    .map(|row| times(row[0], left[0]) ^ times(row[1], left[1]));
                assert_eq!(found, missing.map(|i| data[i]), "{parities:?} {missing:?}");
            }
        }
    }
}
