//! The bytes of values: MessagePack, which keeps every number as it is.

use serde_json::Value;

use crate::error::{StoreCode, StoreError};

/// The deepest nesting of a value: readers of JSON stop at 128.
pub(crate) const MAX_DEPTH: usize = 100;

/// The most bytes of a value.
#[cfg(any(test, feature = "sqlite", feature = "postgres"))]
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// Fails if a value is nested deeper than it could be read back.
pub(crate) fn check_depth(value: &Value) -> Result<(), StoreError> {
    // Without recursion, since the depth is what is in doubt.
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            let problem = "a value is nested deeper than 100 levels: store its parts as items of their own";
            return Err(StoreError::new(StoreCode::ItemValue, problem));
        }
        match value {
            Value::Array(values) => open.extend(values.iter().map(|value| (value, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

/// The bytes of a value whose depth was checked.
#[cfg(any(test, feature = "sqlite", feature = "postgres"))]
pub(crate) fn encode(value: &Value) -> Result<Vec<u8>, StoreError> {
    let bytes = rmp_serde::to_vec_named(value).map_err(|error| {
        StoreError::new(StoreCode::ItemValue, format!("a value cannot be stored: {error}")).with_source(error)
    })?;
    if bytes.len() > MAX_BYTES {
        let problem = "a value is larger than 64 MiB: keep it in a file, and store the name of the file";
        return Err(StoreError::new(StoreCode::ItemValue, problem));
    }
    Ok(bytes)
}

/// The value of stored bytes; the error is the reason why there is none.
#[cfg(any(test, feature = "sqlite", feature = "postgres"))]
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, String> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    reader.set_max_depth(2 * MAX_DEPTH);
    let value = serde::Deserialize::deserialize(&mut reader).map_err(|error| error.to_string())?;
    match encode(&value) {
        // Bytes that follow the value, or another spelling of it, are not what a store wrote.
        Ok(again) if again == bytes => Ok(value),
        _ => Err("its bytes are not those of one value".to_owned()),
    }
}

/// The bytes of a vector.
#[cfg(feature = "sqlite")]
pub(crate) fn encode_vector(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The reverse of [`encode_vector`].
#[cfg(feature = "sqlite")]
pub(crate) fn decode_vector(bytes: &[u8]) -> Option<Vec<f32>> {
    let (numbers, []) = bytes.as_chunks::<4>() else { return None };
    Some(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{check_depth, decode, encode};

    #[test]
    fn numbers_and_texts_are_read_back_as_they_were() {
        for value in [
            json!(null),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(9_007_199_254_740_993_u64),
            json!(0.1),
            json!(1.0),
            json!(-0.0),
            json!(5e-324),
            json!(f64::MAX),
            json!("a\0\u{10ffff}"),
            json!({"": [[], {}], "\0": {"a": [1, 1.0, "1"]}}),
        ] {
            let read = decode(&encode(&value).unwrap()).unwrap();
            assert_eq!((&read, read.to_string()), (&value, value.to_string()));
        }
    }

    #[test]
    fn a_value_that_could_not_be_read_back_is_refused() {
        let nested = |depth| (0..depth).fold(json!(1), |inner, _| Value::Array(vec![inner]));
        assert!(check_depth(&nested(99)).is_ok());
        assert_eq!(decode(&encode(&nested(99)).unwrap()).unwrap(), nested(99));
        assert!(check_depth(&nested(100)).is_err());
    }
}
