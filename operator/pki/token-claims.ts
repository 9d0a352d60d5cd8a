/** What a JSON Web Token says of itself. */
export interface TokenClaims {
  issuer: string;
  subject: string;
  audiences: string[];
  /** Unix seconds. */
  expiresAt: number;
}

/** The claims of a token (RFC 7519), unverified: only for who made it, and for messages. undefined: it is none. */
export function claimsOf(token: string): TokenClaims | undefined {
  try {
    const { iss, sub, aud, exp } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString());
    if (![iss, sub].every((claim) => typeof claim === 'string') || typeof exp !== 'number') return undefined;
    return { issuer: iss, subject: sub, audiences: [aud].flat().map(String), expiresAt: exp };
  } catch {
    return undefined;
  }
}
