const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; // Crockford's base 32.
const LENGTH = 26;

/** A ULID: 48 bits of milliseconds since 1970 and 80 random bits, in 26 characters. */
export function newUlid(): string {
  let bits = BigInt(Date.now());
  for (const byte of crypto.getRandomValues(new Uint8Array(10))) {
    bits = (bits << 8n) | BigInt(byte);
  }
  let text = "";
  for (let place = 0; place < LENGTH; place++) {
    text = ALPHABET[Number(bits & 31n)] + text;
    bits >>= 5n;
  }
  return text;
}
