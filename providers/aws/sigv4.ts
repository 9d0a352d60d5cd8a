import { createHash, createHmac } from 'node:crypto';

/** What requests are signed with. */
export interface AccessKey {
  accessKeyID: string;
  secretAccessKey: string;
  /** With temporary credentials only. */
  sessionToken?: string;
}

/** For which service, where and when a signature is good. */
interface Scope {
  service: string;
  region: string;
  now: Date;
}

/**
 * A request to be signed. Header names in lower case; `host` is taken from the URL. A body that is not held here: x-amz-content-sha256 has
 * its hash.
 */
export interface Signable {
  method: string;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** `request`'s headers and those that authenticate it, by AWS' own signer (Signature Version 4). */
export async function signHeaders(request: Signable, key: AccessKey, scope: Scope): Promise<Record<string, string>> {
  const signer = await signerFor(key, scope);
  return (await signer.sign(asked(request), { signingDate: scope.now })).headers;
}

/** The URL of a request without a body, with what authenticates it as parameters: whoever has it may send it, with these headers. */
export async function presignUrl(
  request: Omit<Signable, 'body'>,
  key: AccessKey,
  scope: Scope & { expiresSeconds: number },
): Promise<string> {
  const signer = await signerFor(key, scope);
  const { now: signingDate, expiresSeconds: expiresIn } = scope;
  // Headers of this name would become parameters, and EKS wants to see one.
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

/** The URL as it is signed: URLSearchParams writes a space as `+`, which AWS would read as a plus. */
export function asSigned(url: URL): URL {
  const same = new URL(url);
  same.search = queryOf([...url.searchParams]);
  return same;
}

/** A key of S3 as a path: everything is encoded but what stands between its parts. */
export const pathOfKey = (key: string): string => key.split('/').map(encoded).join('/');

/** Loaded when AWS is first asked: most operators never do (figures in docs/decisions/0041). */
async function signerFor(key: AccessKey, { service, region }: Scope) {
  const { SignatureV4 } = await import('@smithy/signature-v4');
  const { accessKeyID: accessKeyId, secretAccessKey, sessionToken } = key;
  return new SignatureV4({
    service,
    region,
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) },
    sha256: Sha256,
    // S3 takes the path as it is sent, all others encode it once more (IAM user guide, "Create a canonical request").
    uriEscapePath: service !== 's3',
    applyChecksum: false,
  });
}

/** Node's own hash, as the signer takes one. */
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

/** RFC 3986: also what encodeURIComponent leaves alone. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
