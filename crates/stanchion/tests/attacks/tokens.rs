//! Forged tokens: made of real ones, so that only the signature stands between.

use crate::{Attack, read};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

fn decode(part: &str) -> String {
    String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn encode(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

#[tokio::test]
async fn no_token_can_be_made_of_another() {
    let mut attack = Attack::new().await;
    let mut token = async |account: &str| {
        let path = format!("NS/serviceaccounts/{account}/token");
        let answer = read(&attack.send("admintoken", "POST", &path, "", r#"{"spec":{}}"#).await);
        answer["status"]["token"].as_str().unwrap().to_owned()
    };
    let (weak, strong) = (token("weak").await, token("strong").await);
    let parts = |token: &str| token.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (w, s) = (parts(&weak), parts(&strong));
    let claims = decode(&w[1]);
    let (posing, later) =
        (encode(&claims.replace("weak", "strong")), encode(&claims.replace("\"exp\":1", "\"exp\":9")));
    let header = |change: &str| encode(&format!(r#"{{"alg":{change}}}"#));
    let other_first = if s[2].starts_with('A') { "B" } else { "A" };
    let forged = [
        ("other claims", format!("{}.{posing}.{}", w[0], w[2])),
        ("a later end", format!("{}.{later}.{}", w[0], w[2])),
        ("the signature of another", format!("{}.{}.{}", w[0], s[1], w[2])),
        ("another signature", format!("{}.{}.{other_first}{}", w[0], s[1], &s[2][1..])),
        ("no signature", format!("{}.{}.", s[0], s[1])),
        ("no signature, and no dot", format!("{}.{}", s[0], s[1])),
        ("no algorithm", format!("{}.{posing}.", header(r#""none","typ":"JWT""#))),
        ("no algorithm in capitals", format!("{}.{posing}.", header(r#""NONE""#))),
        ("an empty algorithm", format!("{}.{posing}.{}", header(r#""""#), w[2])),
        ("a symmetric algorithm", format!("{}.{posing}.{}", header(r#""HS256""#), w[2])),
        ("a key of one's own", format!("{}.{posing}.{}", header(r#""ES256","jwk":{"kty":"EC"}"#), w[2])),
        ("a key from elsewhere", format!("{}.{posing}.{}", header(r#""ES256","jku":"https://127.0.0.1:1/k""#), w[2])),
        ("a key by its path", format!("{}.{posing}.{}", header(r#""ES256","kid":"../../pki/sa.key""#), w[2])),
        ("one too many", format!("{strong}.{}", s[2])),
        ("two", format!("{strong},{weak}")),
        ("nothing but dots", "..".to_owned()),
        ("a short signature", format!("{}.{}.{}", s[0], s[1], &s[2][..20])),
    ];
    let before = attack.guarded().await;
    for (what, forged) in &forged {
        let header = format!("authorization: Bearer {forged}");
        let answer = attack.send("", "GET", "NS/secrets/s", &header, "").await;
        assert_eq!(answer.code, 401, "{what}: {}", String::from_utf8_lossy(&answer.body));
        // Nor does the server tell others that it is good.
        let review = format!(r#"{{"spec":{{"token":"{forged}"}}}}"#);
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let review = read(&attack.send("admintoken", "POST", path, "", &review).await);
        assert_ne!(review["status"]["authenticated"], true, "{what}");
    }
    // In other places a good one does not count, and a weak one has few rights.
    for (headers, path) in [
        ("authorization: ", format!("NS/secrets/s?access_token={strong}")),
        ("authorization: ", format!("NS/secrets/s?token={strong}")),
    ] {
        assert_eq!(attack.send("", "GET", &path, headers, "").await.code, 403, "{path}");
    }
    let cookie = format!("authorization: ; cookie: token={strong}");
    assert_eq!(attack.send("", "GET", "NS/secrets/s", &cookie, "").await.code, 403);
    assert_eq!(attack.send(&weak, "GET", "NS/secrets/s", "", "").await.code, 403);
    assert_eq!(attack.send(&strong, "GET", "NS/secrets/s", "", "").await.code, 200);
    assert_eq!(before, attack.guarded().await);
}

/// A token that is bound to an object ends with it, and does not come back with its name.
#[tokio::test]
async fn a_bound_token_ends_with_its_object() {
    let mut attack = Attack::new().await;
    let pod =
        r#"{"metadata":{"name":"p"},"spec":{"serviceAccountName":"strong","containers":[{"name":"c","image":"i"}]}}"#;
    read(&attack.send("admintoken", "POST", "NS/pods", "", pod).await);
    let bound = r#"{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p"}}}"#;
    let answer = read(&attack.send("admintoken", "POST", "NS/serviceaccounts/strong/token", "", bound).await);
    let token = answer["status"]["token"].as_str().unwrap().to_owned();
    assert_eq!(attack.send(&token, "GET", "NS/secrets/s", "", "").await.code, 200);
    read(&attack.send("admintoken", "DELETE", "NS/pods/p?gracePeriodSeconds=0", "", "").await);
    assert_eq!(attack.send(&token, "GET", "NS/secrets/s", "", "").await.code, 401);
    read(&attack.send("admintoken", "POST", "NS/pods", "", pod).await);
    assert_eq!(attack.send(&token, "GET", "NS/secrets/s", "", "").await.code, 401);
}
