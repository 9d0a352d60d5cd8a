import { createHash, createHmac } from 'node:crypto';

/**
 * Signature Version 4 as the fake clouds check it: none of the product's code, which signs by AWS' library, so that both cannot be wrong
 * in the same way. AWS' own clients are checked by it too (test/unit/kit/cloud-sdks/aws.test.ts).
 */
export interface AccessKey {
  accessKeyID: string;
  secretAccessKey: string;
  /** With temporary credentials only. */
  sessionToken?: string;
}

/** For which service, where and when a signature is good. */
export interface Scope {
  service: string;
  region: string;
  now: Date;
}

/** A request to be signed. Header names in lower case; `host` is taken from the URL. */
export interface Signable {
  method: string;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** SHA-256 (hexadecimal) of a body that is not held here. Absent: that of `body`. */
  payloadHash?: string;
}

const ALGORITHM = 'AWS4-HMAC-SHA256';

/** `request`'s headers and those that authenticate it. Source: AWS Signature Version 4, IAM user guide, "Create a signed AWS API request". */
export function signed(request: Signable, key: AccessKey, scope: Scope): Record<string, string> {
  const headers: Record<string, string> = {
    ...request.headers,
    host: request.url.host,
    'x-amz-date': stampOf(scope.now),
    ...(key.sessionToken && { 'x-amz-security-token': key.sessionToken }),
  };
  const { names, signature } = sign({ ...request, headers }, request.payloadHash ?? sha256(request.body), key, scope);
  const credential = `${key.accessKeyID}/${scopeText(scope)}`;
  return {
    ...headers,
    authorization: `${ALGORITHM} Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`,
  };
}

/** The URL of a request without a body, with what authenticates it as parameters: whoever has it may send it, with these headers. */
export function presigned(
  request: Omit<Signable, 'body'>,
  key: AccessKey,
  scope: Scope & { expiresSeconds: number; payloadHash?: string },
): string {
  const url = new URL(request.url);
  const headers = { ...request.headers, host: url.host };
  const parameters = {
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${key.accessKeyID}/${scopeText(scope)}`,
    'X-Amz-Date': stampOf(scope.now),
    'X-Amz-Expires': String(scope.expiresSeconds),
    ...(key.sessionToken && { 'X-Amz-Security-Token': key.sessionToken }),
    'X-Amz-SignedHeaders': Object.keys(headers).sort().join(';'),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  const { signature } = sign({ ...request, url, headers, body: '' }, scope.payloadHash ?? sha256(''), key, scope);
  return `${url.origin}${url.pathname}?${canonicalQuery(url)}&X-Amz-Signature=${signature}`;
}

function sign(request: Signable, payloadHash: string, key: AccessKey, scope: Scope) {
  const sorted = Object.entries(request.headers)
    .map(([name, value]) => [name.toLowerCase(), value.trim().replace(/ +/g, ' ')] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const names = sorted.map(([name]) => name).join(';');
  const canonical = [
    request.method,
    canonicalPath(request.url, scope.service),
    canonicalQuery(request.url),
    ...sorted.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    payloadHash,
  ].join('\n');
  const text = [ALGORITHM, stampOf(scope.now), scopeText(scope), sha256(canonical)].join('\n');
  const parts = [stampOf(scope.now).slice(0, 8), scope.region, scope.service, 'aws4_request'];
  const signingKey = parts.reduce<string | Buffer>((last, part) => hmac(last, part), `AWS4${key.secretAccessKey}`);
  return { names, signature: hmac(signingKey, text).toString('hex') };
}

/** S3 takes the path as it is sent, all others encode it once more (IAM user guide, "Create a canonical request"). */
const canonicalPath = ({ pathname }: URL, service: string): string =>
  service === 's3' ? pathname : pathname.split('/').map(encoded).join('/');

const canonicalQuery = (url: URL): string =>
  [...url.searchParams]
    .map(([name, value]) => [encoded(name), encoded(value)] as const)
    .sort(([a, x], [b, y]) => (a < b || (a === b && x < y) ? -1 : 1))
    .map((pair) => pair.join('='))
    .join('&');

const scopeText = ({ now, region, service }: Scope): string =>
  `${stampOf(now).slice(0, 8)}/${region}/${service}/aws4_request`;

/** 20150830T123600Z */
const stampOf = (date: Date): string => date.toISOString().replace(/[-:]|\.\d{3}/g, '');

/** RFC 3986: also what encodeURIComponent leaves alone. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
