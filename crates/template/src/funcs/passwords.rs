//! Hashes of passwords, passwords from a master password, and texts encrypted with a password.
//!
//! These are slow on purpose. Each charges the rendering for its time, so that no template keeps a processor busy for longer
//! than some seconds; and only one at a time takes the 32 MiB that a derived password needs.

use super::encoding::bytes;
use super::{Table, arg, int, text};
use crate::value::{Result, Str, Val};
use crate::world::World;
use aes::Aes256;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use ring::hmac;
use std::sync::{Mutex, PoisonError};

pub(super) const TABLE: Table = &[
    ("bcrypt", "s", |w, a| {
        let hash = bcrypt(w, &arg(a, 0))?;
        w.heap.string(hash)
    }),
    ("htpasswd", "ss", |w, a| {
        let user = text(a, 0);
        if user.contains(':') {
            return w.heap.string(format!("invalid username: {user}"));
        }
        let hash = bcrypt(w, &arg(a, 1))?;
        w.heap.string(format!("{user}:{hash}"))
    }),
    ("derivePassword", "issss", derive_password),
    ("encryptAES", "ss", |w, a| {
        let plain = arg(a, 1);
        let plain = bytes(&plain);
        if plain.is_empty() {
            return w.heap.string(String::new());
        }
        w.heap.charge(plain.len().saturating_mul(2))?;
        let mut iv = [0; BLOCK];
        w.random(&mut iv);
        let sealed =
            cbc::Encryptor::<Aes256>::new(&key(&arg(a, 0)).into(), &iv.into()).encrypt_padded_vec::<Pkcs7>(plain);
        w.heap.string(STANDARD.encode([&iv[..], &sealed].concat()))
    }),
    ("decryptAES", "ss", |w, a| {
        let sealed = text(a, 1);
        if sealed.is_empty() {
            return w.heap.string(String::new());
        }
        w.heap.charge(sealed.len())?;
        let sealed = STANDARD.decode(&*sealed).map_err(|error| format!("illegal base64 data: {error}"))?;
        let (iv, sealed) = sealed.split_first_chunk::<BLOCK>().ok_or("the text is too short to be an encrypted one")?;
        let open = cbc::Decryptor::<Aes256>::new(&key(&arg(a, 0)).into(), &(*iv).into());
        let plain =
            open.decrypt_padded_vec::<Pkcs7>(sealed).map_err(|_| "the text was not encrypted with this password")?;
        Ok(Val::Str(Str::from_bytes(&plain)))
    }),
];

/// The bytes of a block of AES.
const BLOCK: usize = 16;
/// What a hash charges: some twenty fit into a rendering.
const HASH: usize = 3 << 20;
/// bcrypt's cost, as Go has it by default.
const COST: u32 = 10;
/// The bytes of a password that bcrypt takes.
const LONGEST: usize = 72;
/// What a derived password charges: eight fit into a rendering.
const DERIVED: usize = 8 << 20;
/// Which derived password is being made.
static DERIVING: Mutex<()> = Mutex::new(());

fn bcrypt(w: &mut World<'_>, password: &Val<'_>) -> Result<String> {
    w.heap.charge(HASH)?;
    let mut salt = [0; 16];
    w.random(&mut salt);
    let password = bytes(password);
    if password.len() > LONGEST {
        return Ok("failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes".to_owned());
    }
    Ok(match bcrypt::hash_with_salt(password, COST, salt) {
        Ok(hash) => hash.format_for_version(bcrypt::Version::TwoA),
        Err(error) => format!("failed to encrypt string with bcrypt: {error}"),
    })
}

/// A password as a key, cut or filled with zeros as Sprig does it.
fn key(password: &Val<'_>) -> [u8; 32] {
    let mut key = [0; 32];
    key.iter_mut().zip(bytes(password)).for_each(|(to, from)| *to = *from);
    key
}

const SEED: &str = "com.lyndir.masterpassword";

/// The algorithm of Master Password: a key from the master password and the user, a password from the key and the site.
fn derive_password<'a>(w: &mut World<'a>, a: &[Val<'a>]) -> Result<Val<'a>> {
    let (kind, user, site) = (text(a, 1), text(a, 3), text(a, 4));
    let counter = u32::try_from(int(a, 0)).map_err(|_| "the counter is no uint32")?;
    let templates: &[&str] = match &*kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => LONG,
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return w.heap.string(format!("cannot find password template {kind}")),
    };
    w.heap.charge(DERIVED)?;
    let salt = [SEED.as_bytes(), &length(&user), user.as_bytes()].concat();
    let mut key = [0; 64];
    let params = scrypt::Params::new(15, 8, 2).map_err(|error| format!("failed to derive password: {error}"))?;
    {
        let _one = DERIVING.lock().unwrap_or_else(PoisonError::into_inner);
        scrypt::scrypt(bytes(&arg(a, 2)), &salt, &params, &mut key)
            .map_err(|error| format!("failed to derive password: {error}"))?;
    }
    let message = [SEED.as_bytes(), &length(&site), site.as_bytes(), &counter.to_be_bytes()].concat();
    let seed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &message);
    let (first, rest) = seed.as_ref().split_first().ok_or("failed to derive password")?;
    let template = templates.get(usize::from(*first) % templates.len()).copied().unwrap_or_default();
    let characters = template.bytes().zip(rest).filter_map(|(class, at)| {
        let characters = characters(class);
        characters.get(usize::from(*at) % characters.len()).copied().map(char::from)
    });
    w.heap.string(characters.collect::<String>())
}

fn length(text: &str) -> [u8; 4] {
    u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes()
}

/// What may stand where a template of passwords has a letter.
fn characters(class: u8) -> &'static [u8] {
    match class {
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

const LONG: &[&str] = &[
    "CvcvnoCvcvCvcv",
    "CvcvCvcvnoCvcv",
    "CvcvCvcvCvcvno",
    "CvccnoCvcvCvcv",
    "CvccCvcvnoCvcv",
    "CvccCvcvCvcvno",
    "CvcvnoCvccCvcv",
    "CvcvCvccnoCvcv",
    "CvcvCvccCvcvno",
    "CvcvnoCvcvCvcc",
    "CvcvCvcvnoCvcc",
    "CvcvCvcvCvccno",
    "CvccnoCvccCvcv",
    "CvccCvccnoCvcv",
    "CvccCvccCvcvno",
    "CvcvnoCvccCvcc",
    "CvcvCvccnoCvcc",
    "CvcvCvccCvccno",
    "CvccnoCvcvCvcc",
    "CvccCvcvnoCvcc",
    "CvccCvcvCvccno",
];
