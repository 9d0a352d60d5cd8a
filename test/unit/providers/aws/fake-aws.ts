import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { silent } from '../../../../operator/kube/log.ts';
import type { AwsConnection } from '../../../../providers/aws/api.ts';
import type { AccessKey } from '../../../../providers/aws/sigv4.ts';
import type { CloudContext } from '../../../../providers/cloud.ts';
import { signed } from '../../../kit/cloud/web/signature.ts';
import { owner } from './fixtures.ts';

/** A request as it came in. */
export interface Asked {
  service: string;
  /** Region that it was signed for. */
  region: string;
  /** `GetCallerIdentity`, `DescribeKey`; for EKS the path. */
  action: string;
  /** Parameters of query APIs, or the JSON of others. */
  input: Record<string, any>;
  /** Who signed it; undefined: nobody. */
  accessKeyID: string | undefined;
}

export interface Answer {
  status?: number;
  /** XML as it is; anything else is written as JSON. */
  body: unknown;
}

export const now = new Date('2026-11-21T10:00:00Z');
export const secret = { accessKeyID: 'AKIAEXAMPLEEXAMPLE00', secretAccessKey: 'hush/hush+hush' };
const SECRETS: Record<string, AccessKey> = {
  [secret.accessKeyID]: secret,
  ASIASESSION000000000: {
    accessKeyID: 'ASIASESSION000000000',
    secretAccessKey: 'session secret',
    sessionToken: 'session token',
  },
};
export const SESSION = SECRETS.ASIASESSION000000000!;

/** An answer of a query API: `fields` becomes `<ActionResponse>`. */
export const xml = (action: string, inner: string): Answer => ({
  body: `<?xml version="1.0"?>\n<${action}Response xmlns="https://aws.example/doc/">${inner}<requestId>r-1</requestId></${action}Response>`,
});

/** A refusal of a query API. */
export const refusal = (status: number, code: string, message = 'no'): Answer => ({
  status,
  body: `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
});

/** A refusal of EC2, which has its own form. */
export const refusalOfEC2 = (status: number, code: string): Answer => ({
  status,
  body: `<Response><Errors><Error><Code>${code}</Code><Message>no</Message></Error></Errors></Response>`,
});

export const identity = (arn: string): Answer =>
  xml(
    'GetCallerIdentity',
    `<GetCallerIdentityResult><Arn>${arn}</Arn><UserId>AIDA</UserId><Account>123456789012</Account></GetCallerIdentityResult>`,
  );

/** AWS' APIs on loopback, as far as a test says what they answer; what is signed wrongly they refuse by themselves. */
export class FakeAws implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly #server;
  readonly #url: string;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.#url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** undefined from `answer`: the service does not know it. */
  static async start(answer: (asked: Asked) => Answer | undefined): Promise<FakeAws> {
    const server = createServer((request, response) => {
      void (async () => {
        const body = await textOf(request);
        const asked = read(request, body);
        aws.asked.push(asked);
        const wrong = asked.accessKeyID !== undefined && !isSignedRight(request, body, asked);
        const said = wrong ? refusal(403, 'SignatureDoesNotMatch') : answer(asked);
        const { status = 200, body: text } = said ?? { status: 404, body: { __type: 'ResourceNotFoundException' } };
        response.writeHead(status).end(typeof text === 'string' ? text : JSON.stringify(text));
      })();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const aws = new FakeAws(server);
    return aws;
  }

  /** The service is told by the path, as all are at one address. */
  readonly endpoint = (): string => this.#url;

  connection(key: AccessKey | undefined = secret): AwsConnection & { key: AccessKey } {
    const { signal } = new AbortController();
    return { region: 'eu-central-1', key: key!, endpoint: this.endpoint, now: () => now, signal };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

const TARGETS: Record<string, string> = { ResourceGroupsTaggingAPI_20170126: 'tagging', TrentService: 'kms' };

function read({ headers, url = '' }: IncomingMessage, body: string): Asked {
  const credential = /Credential=([^/]+)\/\d+\/([^/]+)\/([^/]+)\//.exec(headers.authorization ?? '');
  const [, accessKeyID, region = '', service = 'sts'] = credential ?? [];
  const [api, target] = String(headers['x-amz-target'] ?? '').split('.');
  if (target) return { service: TARGETS[api!]!, region, action: target, input: JSON.parse(body), accessKeyID };
  if (service === 'eks') return { service, region, action: url, input: {}, accessKeyID };
  const input = Object.fromEntries(new URLSearchParams(body));
  return { service, region, action: String(input.Action), input, accessKeyID };
}

/** 20150830T123600Z */
const signedAt = ({ 'x-amz-date': stamp }: IncomingHttpHeaders): Date =>
  new Date(String(stamp).replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));

function isSignedRight({ method = '', url = '', headers }: IncomingMessage, body: string, asked: Asked): boolean {
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '')![1]!.split(';');
  const made = ['host', 'x-amz-date', 'x-amz-security-token'];
  const given = names.filter((name) => !made.includes(name)).map((name) => [name, String(headers[name])]);
  const request = { method, url: new URL(url, `http://${headers.host}`), headers: Object.fromEntries(given), body };
  const key = SECRETS[asked.accessKeyID!];
  if (!key || headers['x-amz-security-token'] !== key.sessionToken) return false;
  return (
    signed(request, key, { service: asked.service, region: asked.region, now: signedAt(headers) }).authorization ===
    headers.authorization
  );
}

export const context = (fake: FakeAws, credentials: Record<string, string> = secret): CloudContext => ({
  owner,
  account: { id: 'aws', credentials },
  region: fake.connection().region,
  profile: {} as CloudContext['profile'],
  state: { url: 'file:///nowhere', env: {} },
  log: silent,
  signal: new AbortController().signal,
  now: () => now,
});
