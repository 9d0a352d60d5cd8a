import { request } from 'undici';
import { CoppiceError, dependencyNotReady, type ErrorCode } from '../../operator/api/errors.ts';
import { type Patience, patienceAsked, saidOfProxy, sendPatiently, toClouds } from '../cloud-http.ts';
import { classify } from './errors.ts';
import { awsHostOf, partitionOf } from './partitions.ts';
import { type AccessKey, asSigned, signHeaders } from './sigv4.ts';
import { childrenAt, type Element, parseRoot, parseXML, textAt } from './xml.ts';

/** Connection parameters for AWS. */
export interface AwsConnection {
  region: string;
  /** Absent: the request is unsigned, which only STS accepts, for identity tokens. */
  key?: AccessKey;
  /** Base URL of a service, without a trailing slash; absent or undefined: AWS' own. */
  endpoint?: (service: AwsService, region: string) => string | undefined;
  now(): Date;
  signal: AbortSignal;
}

/** Services in use, each with the region for IAM signatures. */
export type AwsService =
  | 'sts'
  | 'iam'
  | 'ec2'
  | 'eks'
  | 'kms'
  | 'autoscaling'
  | 'elasticloadbalancing'
  | 'tagging'
  | 'route53'
  | 's3';

/** Versions of the query APIs (apiVersion in botocore 1.43.11's service models). */
const VERSIONS: Partial<Record<AwsService, string>> = {
  sts: '2011-06-15',
  iam: '2010-05-08',
  ec2: '2016-11-15',
  autoscaling: '2011-01-01',
  elasticloadbalancing: '2015-12-01',
};

/** Timeout: long enough for a page of tags in a busy region, short enough not to block a reconciliation. */
const TIMEOUT_MS = 20_000;

interface Ask {
  service: AwsService;
  /** Permission name, for example sts:GetCallerIdentity. */
  action: string;
  method: 'GET' | 'POST';
  path: string;
  headers: Record<string, string>;
  body: string;
}

/**
 * Calls a query API (sts, iam, ec2, autoscaling, elasticloadbalancing). Resolves to the answer's root element. Rejects
 * with a CoppiceError, see awsCodeOf.
 */
export async function query(
  aws: AwsConnection,
  service: 'sts' | 'iam' | 'ec2' | 'autoscaling' | 'elasticloadbalancing',
  action: string,
  parameters: Record<string, string> = {},
): Promise<Element> {
  const body = new URLSearchParams({ Action: action, Version: VERSIONS[service]!, ...parameters }).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
  const text = await ask(aws, { service, action: `${service}:${action}`, method: 'POST', path: '/', headers, body });
  const answer = parseXML(text)[`${action}Response`];
  if (answer === undefined || Array.isArray(answer)) throw noAnswer(`${service}:${action}`);
  return answer;
}

/** Calls a JSON API (tagging, kms). `target`: for example ResourceGroupsTaggingAPI_20170126.GetResources. */
export async function postJson<Answer>(
  aws: AwsConnection,
  service: 'tagging' | 'kms',
  target: string,
  input: object,
): Promise<Answer> {
  const headers = { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': target };
  const action = `${service === 'tagging' ? 'tag' : service}:${target.split('.').at(-1)}`;
  const text = await ask(aws, { service, action, method: 'POST', path: '/', headers, body: JSON.stringify(input) });
  return parsed<Answer>(text, action);
}

/** Reads from a REST API (eks). */
export async function getJson<Answer>(
  aws: AwsConnection,
  service: 'eks',
  action: string,
  path: string,
): Promise<Answer> {
  const text = await ask(aws, { service, action: `${service}:${action}`, method: 'GET', path, headers: {}, body: '' });
  return parsed<Answer>(text, `${service}:${action}`);
}

/** Calls an XML REST API (route53). Resolves to the answer's root element of the expected name. */
export async function askXml(
  aws: AwsConnection,
  action: string,
  { method = 'GET', path, body = '' }: { method?: 'GET' | 'POST'; path: string; body?: string },
): Promise<Element> {
  const service = 'route53';
  const headers: Record<string, string> = body === '' ? {} : { 'content-type': 'text/xml' };
  const text = await ask(aws, { service, action: `${service}:${action}`, method, path, headers, body });
  const answer = parseXML(text)[`${action}Response`];
  if (answer === undefined || Array.isArray(answer)) throw noAnswer(`${service}:${action}`);
  return answer;
}

function parsed<Answer>(text: string, action: string): Answer {
  try {
    return JSON.parse(text) as Answer;
  } catch {
    throw noAnswer(action);
  }
}

/** Something else answered in AWS' place. */
export const noAnswer = (action: string): CoppiceError =>
  dependencyNotReady(`what answered ${action} is not AWS: is there a proxy in between?`);

/** AWS' message in an error of this file; '' for other errors. */
export const awsMessageOf = (error: unknown): string =>
  (error instanceof CoppiceError && (error.cause as { message?: string } | undefined)?.message) || '';

/** AWS' code in an error of this file, for example NoSuchEntity; undefined for other errors. */
export const awsCodeOf = (error: unknown): string | undefined =>
  error instanceof CoppiceError ? (error.cause as { awsCode?: string } | undefined)?.awsCode : undefined;

interface Answer extends Patience {
  text: string;
}

async function ask(aws: AwsConnection, asked: Ask): Promise<string> {
  const { method, action } = asked;
  const answer = await sendPatiently(method, aws.signal, () => answerTo(aws, asked), isThrottled);
  if (answer.status < 300) return answer.text;
  throw awsRefusal(action, answer, said(answer));
}

const said = ({ text, headers }: Answer) => codeAndMessage(text, String(headers['x-amzn-errortype'] ?? ''));

/** Most AWS APIs report throttling with status 400. */
const isThrottled = (answer: Answer): boolean =>
  classify(`api error ${said(answer).awsCode}`) === 'ERR_INFRA_RATE_LIMITS_EXCEEDED';

async function answerTo(aws: AwsConnection, { service, action, method, path, headers, body }: Ask): Promise<Answer> {
  const partition = partitionOf(aws.region);
  const global = service === 'iam' || service === 'route53' ? partition[service] : undefined;
  const region = global?.region ?? aws.region;
  const host = global?.host ?? awsHostOf(service, region);
  const url = asSigned(new URL(`${aws.endpoint?.(service, region) ?? `https://${host}`}${path}`));
  const sent = aws.key
    ? await signHeaders({ method, url, headers, body }, aws.key, { service, region, now: aws.now() })
    : { ...headers };
  try {
    // AWS does not redirect, so redirects are not followed.
    const answer = await request(url, {
      dispatcher: toClouds,
      method,
      headers: sent,
      signal: AbortSignal.any([aws.signal, AbortSignal.timeout(TIMEOUT_MS)]),
      ...(body && { body }),
    });
    return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  } catch (error) {
    aws.signal.throwIfAborted();
    const { code, name } = error as { code?: string; name: string };
    const why = saidOfProxy(error) || `: ${code ?? name}`;
    throw dependencyNotReady(`AWS cannot be reached for ${action} at ${url.host}${why}`, error);
  }
}

/** Where errors are below the root element: query and REST APIs, EC2, S3 (botocore 1.44.8, parsers.py: _do_error_parse of each protocol). */
const ERRORS = [['Error'], ['Errors', 'Error'], []];

/** Error code and message in the formats of query, EC2, S3, JSON and REST APIs, and of Route 53's batches. */
export function codeAndMessage(text: string, type = ''): { awsCode: string; message: string } {
  const xml = parseXML(text);
  const batch = ['InvalidChangeBatch'].find((name) => xml[name] !== undefined);
  // Route 53 reports faults in a batch's changes in a separate element (API reference, "InvalidChangeBatch").
  if (batch !== undefined) {
    const messages = childrenAt(xml[batch], 'Message', 'Messages').map((one) => textAt(one));
    return { awsCode: batch, message: messages.join('; ') || textAt(xml[batch], 'Message') };
  }
  const root = parseRoot(text);
  const error = ERRORS.find((path) => textAt(root, ...path, 'Code'));
  if (error) return { awsCode: textAt(root, ...error, 'Code'), message: textAt(root, ...error, 'Message') };
  let body: { __type?: string; code?: string; message?: string; Message?: string } = {};
  try {
    body = JSON.parse(text);
  } catch {
    // Neither format: the status decides.
  }
  // `com.amazonaws.tagging#ThrottledException`, `ResourceNotFoundException:http://...`
  const name = (type || body.__type || body.code || '').split(':')[0]!.split('#').at(-1)!;
  return { awsCode: name, message: body.message ?? body.Message ?? '' };
}

const BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  401: 'ERR_INFRA_UNAUTHENTICATED',
  403: 'ERR_INFRA_UNAUTHORIZED',
  429: 'ERR_INFRA_RATE_LIMITS_EXCEEDED',
};

/** The error for AWS' refusal; awsCodeOf returns AWS' code. */
export function awsRefusal(
  action: string,
  answer: Patience,
  { awsCode, message }: { awsCode: string; message: string },
): CoppiceError {
  const { status } = answer;
  const words = [awsCode || `HTTP ${status}`, message.split('\n')[0]!.slice(0, 300)].filter(Boolean).join(': ');
  const failed = status >= 500 ? 'ERR_RETRYABLE_INFRA_DEPENDENCIES' : 'ERR_INFRA_DEPENDENCIES';
  const known = classify(`api error ${awsCode}`) ?? BY_STATUS[status];
  const verb = !known && status >= 500 ? 'failed at' : 'refuses';
  return new CoppiceError(known ?? failed, `AWS ${verb} ${action}: ${words}${patienceAsked(answer)}`, {
    cause: { awsCode, status, message },
  });
}
