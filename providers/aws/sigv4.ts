import { createHash, createHmac } from 'node:crypto';

/** Signing key. */
export interface AccessKey {
  accessKeyID: string;
  secretAccessKey: string;
  /** For temporary credentials only. */
  sessionToken?: string;
}

/** Scope of a signature: service, region and time. */
interface Scope {
  service: string;
  region: string;
  now: Date;
}

/**
 * A request to sign. Header names in lower case; `host` follows from the URL. For a streamed body x-amz-content-sha256
 * contains its hash.
 */
interface Signable {
  method: string;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** `request`'s headers with authentication, by AWS' own signer (Signature Version 4). */
export async function signHeaders(request: Signable, key: AccessKey, scope: Scope): Promise<Record<string, string>> {
  const signer = await signerFor(key, scope);
  return (await signer.sign(asked(request), { signingDate: scope.now })).headers;
}

/** URL of a request without a body, with authentication as parameters: its holder may send it, with these headers. */
export async function presignUrl(
  request: Omit<Signable, 'body'>,
  key: AccessKey,
  scope: Scope & { expiresSeconds: number },
): Promise<string> {
  const signer = await signerFor(key, scope);
  const { now: signingDate, expiresSeconds: expiresIn } = scope;
  // By default these headers would become parameters, but EKS requires one as a header.
  const unhoistableHeaders = new Set(Object.keys(request.headers));
  const { query = {} } = await signer.presign(asked({ ...request, body: '' }), {
    signingDate,
    expiresIn,
    unhoistableHeaders,
  });
  const url = new URL(request.url);
  url.search = queryOf(Object.entries(query as Record<string, string>));
  return url.href;
}

/** The URL in signed form: URLSearchParams encodes a space as `+`, which AWS reads as a plus. */
export function asSigned(url: URL): URL {
  const same = new URL(url);
  same.search = queryOf([...url.searchParams]);
  return same;
}

/** An S3 key as a path: everything is encoded except slashes. */
export const pathOfKey = (key: string): string => key.split('/').map(encoded).join('/');

/** Loaded at the first AWS call: most operators never make one (figures in docs/decisions/0041). */
async function signerFor(key: AccessKey, { service, region }: Scope) {
  const { SignatureV4 } = await import('@smithy/signature-v4');
  const { accessKeyID: accessKeyId, secretAccessKey, sessionToken } = key;
  return new SignatureV4({
    service,
    region,
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) },
    sha256: Sha256,
    // S3 takes the path as sent, all others encode it once more (IAM user guide, "Create a canonical request").
    uriEscapePath: service !== 's3',
    applyChecksum: false,
  });
}

/** Node's hash in the signer's interface. */
class Sha256 {
  readonly #hash;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error('a hash is used once');
  }
}

const bytesOf = (data: string | ArrayBuffer | ArrayBufferView): Uint8Array => {
  if (typeof data === 'string') return Buffer.from(data);
  return data instanceof ArrayBuffer
    ? new Uint8Array(data)
    : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
};

const asked = ({ method, url, headers, body }: Signable) => ({
  method,
  protocol: url.protocol,
  hostname: url.hostname,
  path: url.pathname,
  query: Object.fromEntries(url.searchParams),
  headers: { ...headers, host: url.host },
  body,
});

const queryOf = (parameters: readonly (readonly [string, string])[]): string =>
  parameters
    .map((pair) => pair.map(encoded))
    .sort(([a = '', x = ''], [b = '', y = '']) => (a < b || (a === b && x < y) ? -1 : 1))
    .map((pair) => pair.join('='))
    .join('&');

/** RFC 3986: also the characters that encodeURIComponent leaves unencoded. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
