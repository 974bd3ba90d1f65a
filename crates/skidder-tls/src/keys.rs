//! Private keys in PEM, also encrypted ones.
//!
//! Two ways to encrypt a key are in use: PKCS#8 (`ENCRYPTED PRIVATE KEY`, RFC 5958 with PKCS#5), and the old one of
//! OpenSSL, in which a header `DEK-Info` (RFC 1421) names the cipher, and MD5 makes the key of the passphrase.

use aes::{Aes128, Aes192, Aes256};
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipherDecrypt, BlockModeDecrypt, KeyInit, KeyIvInit};
use des::{Des, TdesEde3};
use md5::{Digest as _, Md5};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

/// Reads the first key of `text`; the error ends the sentence "the key cannot be read: …".
pub(crate) fn read(
    text: &[u8],
    passphrase: Option<&str>,
) -> Result<PrivateKeyDer<'static>, String> {
    let Some(block) = encrypted(text) else {
        return PrivateKeyDer::from_pem_slice(text).map_err(|error| error.to_string());
    };
    let Some(passphrase) = passphrase else {
        return Err("it is encrypted; set `ssl.key_passphrase`".to_owned());
    };
    let der = block.bytes()?;
    if block.label == "ENCRYPTED PRIVATE KEY" {
        let wrong = |error: pkcs8::Error| format!("it cannot be decrypted: {error}");
        let info = pkcs8::EncryptedPrivateKeyInfoRef::try_from(&der[..])
            .map_err(|error| format!("it is no key of PKCS#8: {error}"))?;
        let key = info.decrypt(passphrase).map_err(wrong)?;
        return Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into());
    }
    let plain = block.decrypt(&der, passphrase)?;
    match block.label {
        "RSA PRIVATE KEY" => Ok(PrivatePkcs1KeyDer::from(plain).into()),
        "EC PRIVATE KEY" => Ok(PrivateSec1KeyDer::from(plain).into()),
        other => Err(format!("`{other}` cannot be encrypted in this way")),
    }
}

/// A part of a PEM file.
#[derive(Debug)]
struct Block<'a> {
    label: &'a str,
    /// Cipher and initial vector of `DEK-Info`.
    cipher: Option<(&'a str, &'a str)>,
    base64: String,
}

/// The encrypted key, if that is what comes first.
fn encrypted(text: &[u8]) -> Option<Block<'_>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut lines = text.lines().map(str::trim);
    let label = lines.find_map(|line| {
        let label = line.strip_prefix("-----BEGIN ")?.strip_suffix("-----")?;
        label.ends_with("PRIVATE KEY").then_some(label)
    })?;
    let mut block = Block { label, cipher: None, base64: String::new() };
    for line in lines {
        if line.starts_with("-----END ") {
            break;
        }
        match line.split_once(':') {
            Some(("DEK-Info", info)) => block.cipher = info.trim().split_once(','),
            Some(_) => {}
            None => block.base64.push_str(line),
        }
    }
    (label == "ENCRYPTED PRIVATE KEY" || block.cipher.is_some()).then_some(block)
}

impl Block<'_> {
    fn bytes(&self) -> Result<Vec<u8>, String> {
        use base64::Engine as _;
        let decoded = base64::engine::general_purpose::STANDARD.decode(&self.base64);
        decoded.map_err(|error| format!("it is not in PEM: {error}"))
    }

    fn decrypt(&self, der: &[u8], passphrase: &str) -> Result<Vec<u8>, String> {
        let (cipher, vector) = self.cipher.unwrap_or_default();
        let vector = hex(vector).ok_or("its `DEK-Info` is not in hexadecimal")?;
        let secret = Secret { passphrase: passphrase.as_bytes(), vector: &vector };
        match cipher {
            "AES-128-CBC" => secret.decrypt::<Aes128>(der, 16),
            "AES-192-CBC" => secret.decrypt::<Aes192>(der, 24),
            "AES-256-CBC" => secret.decrypt::<Aes256>(der, 32),
            "DES-EDE3-CBC" => secret.decrypt::<TdesEde3>(der, 24),
            "DES-CBC" => secret.decrypt::<Des>(der, 8),
            other => Err(format!("it is encrypted with `{other}`; convert it to PKCS#8")),
        }
    }
}

struct Secret<'a> {
    passphrase: &'a [u8],
    vector: &'a [u8],
}

impl Secret<'_> {
    fn decrypt<C>(&self, der: &[u8], key_bytes: usize) -> Result<Vec<u8>, String>
    where
        C: BlockCipherDecrypt + KeyInit,
    {
        let key = self.key(key_bytes);
        let decryptor = cbc::Decryptor::<C>::new_from_slices(&key, self.vector)
            .map_err(|_| "its `DEK-Info` has another length than its cipher".to_owned())?;
        decryptor
            .decrypt_padded_vec::<Pkcs7>(der)
            .map_err(|_| "it cannot be decrypted: the passphrase is wrong".to_owned())
    }

    /// `EVP_BytesToKey` of OpenSSL, with MD5 and one round; the salt is the beginning of the vector.
    fn key(&self, key_bytes: usize) -> Vec<u8> {
        let salt = &self.vector[..self.vector.len().min(8)];
        let mut key = Vec::new();
        let mut last = Vec::new();
        while key.len() < key_bytes {
            let mut hash = Md5::new();
            hash.update(&last);
            hash.update(self.passphrase);
            hash.update(salt);
            last = hash.finalize().to_vec();
            key.extend_from_slice(&last);
        }
        key.truncate(key_bytes);
        key
    }
}

/// Bytes of hexadecimal digits.
pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| match *pair {
        [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    };
    text.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = include_str!("../testdata/plain.pem");

    #[test]
    fn keys_are_decrypted_whatever_encrypted_them() {
        let plain = read(PLAIN.as_bytes(), None).unwrap();
        let table = [
            include_str!("../testdata/pkcs8-aes256.pem"),
            include_str!("../testdata/pkcs8-scrypt.pem"),
            include_str!("../testdata/pkcs8-des3.pem"),
        ];
        for text in table {
            assert_eq!(read(text.as_bytes(), Some("secret")).unwrap(), plain, "{text}");
        }
        let old = read(include_bytes!("../testdata/ec-plain.pem"), None).unwrap();
        let table = [
            include_str!("../testdata/ec-aes128.pem"),
            include_str!("../testdata/ec-aes256.pem"),
            include_str!("../testdata/ec-des3.pem"),
        ];
        for text in table {
            // The parameters of the curve may stand before it.
            let text = format!(
                "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{text}"
            );
            assert_eq!(read(text.as_bytes(), Some("secret")).unwrap(), old, "{text}");
            for (passphrase, said) in [(None, "ssl.key_passphrase"), (Some("wrong"), "")] {
                let error = read(text.as_bytes(), passphrase).map(|key| key != old);
                // A wrong passphrase can leave a padding that looks good, one time in 256.
                assert!(error.as_ref().map_or_else(|error| error.contains(said), |other| *other));
            }
        }
        let wrong = read(table[0].as_bytes(), Some("wrong"));
        assert!(wrong.is_err() || wrong.unwrap() != old);
        let pkcs8 = include_bytes!("../testdata/pkcs8-aes256.pem");
        assert!(read(pkcs8, Some("wrong")).unwrap_err().contains("decrypted"));
        assert!(read(pkcs8, None).unwrap_err().contains("ssl.key_passphrase"));
    }

    #[test]
    fn digits_are_read_in_pairs() {
        assert_eq!(hex("00fFa0"), Some(vec![0, 255, 160]));
        assert_eq!((hex("0"), hex("0g")), (None, None));
    }
}
