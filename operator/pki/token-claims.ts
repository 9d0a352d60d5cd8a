/** Claims of a JSON Web Token. */
interface TokenClaims {
  issuer: string;
  subject: string;
  audiences: string[];
  /** Unix seconds. */
  expiresAt: number;
}

/** Claims of a token (RFC 7519), unverified: only to identify the issuer, and for messages. undefined: not a JWT. */
export function claimsOf(token: string): TokenClaims | undefined {
  try {
    const { iss, sub, aud, exp } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString());
    if (![iss, sub].every((claim) => typeof claim === 'string') || typeof exp !== 'number') return undefined;
    return { issuer: iss, subject: sub, audiences: [aud].flat().map(String), expiresAt: exp };
  } catch {
    return undefined;
  }
}
