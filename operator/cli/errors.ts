import { EXIT, EXITS, type ExitCode } from '../api/exits.ts';

export { EXIT, type ExitCode } from '../api/exits.ts';

/** Meaning of each exit code, as `coppice help` prints it. */
export const EXIT_MEANINGS: readonly (readonly [ExitCode, string])[] = Object.values(EXIT).map((code) => [
  code,
  EXITS[code].see,
]);

/** An error for the person at the terminal: what happened to which object. `advice` says what to do. */
export class CliError extends Error {
  readonly exitCode: ExitCode;
  readonly advice: string | undefined;

  constructor(message: string, options: { exitCode?: ExitCode; advice?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'CliError';
    this.exitCode = options.exitCode ?? EXIT.failed;
    this.advice = options.advice;
  }
}

/** The command line is wrong (exit code 2). */
export class UsageError extends CliError {
  constructor(message: string, advice?: string) {
    super(message, { exitCode: EXIT.usage, ...(advice === undefined ? {} : { advice }) });
    this.name = 'UsageError';
  }
}

/** The person pressed Ctrl-C, or the process got SIGTERM (exit code 130). */
export class InterruptedError extends CliError {
  constructor(message = 'interrupted') {
    super(message, { exitCode: EXIT.interrupted });
    this.name = 'InterruptedError';
  }
}

export interface Explained {
  message: string;
  exitCode: ExitCode;
}

// Recognize errors of other rooms by shape, not by class: explaining an error must not load the module that threw it.
interface ForeignError {
  name?: string;
  message?: string;
  advice?: unknown;
  status?: unknown;
  statusCode?: unknown;
  reason?: unknown;
  request?: unknown;
  code?: unknown;
  cause?: unknown;
}

const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_SOCKET',
]);

/** Phrases of Kubernetes around the reason that tell a person nothing. */
const WRAPPING: readonly (readonly [RegExp, string])[] = [
  [/failed to create typed patch object \([^)]*\): (errors: )?/, ''],
  [/, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; [^,\]]*/, ''],
  // The command line or the manifest's line already names the object.
  [/^[A-Z]\w+\.[a-z.-]+ "[^"]*" is invalid: /, ''],
  // Go's notation for a value of the wrong type: keep the value that the person wrote.
  [/&value\.value\w*\{Value:(.*?)\}(?=[ ,\]]|$)/g, '$1'],
];

/** Codes of a server certificate that the authority in the kubeconfig did not sign. */
const FOREIGN_CERTIFICATE = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_SIGNATURE_FAILURE',
]);

function causes(error: ForeignError): ForeignError[] {
  const chain: ForeignError[] = [];
  let current: unknown = error;
  while (current !== null && typeof current === 'object' && chain.length < 8) {
    chain.push(current as ForeignError);
    current = (current as ForeignError).cause;
  }
  return chain;
}

/**
 * One line and the exit code for any thrown value. Never a stack trace.
 * @param isChosen whether the person named the API server. If so, advice to start or choose another is left out
 * @param kubectl `kubectl` with the options that select this API server
 */
export function explain(thrown: unknown, isChosen = true, kubectl = 'kubectl'): Explained {
  if (thrown === null || typeof thrown !== 'object') return { message: oneLine(String(thrown)), exitCode: EXIT.failed };
  const error = thrown as ForeignError;
  const said = oneLine(error.message ?? error.name ?? 'unknown error');
  if (error instanceof CliError) return { message: withAdvice(said, error.advice), exitCode: error.exitCode };
  if (error.name === 'AbortError') return { message: 'interrupted', exitCode: EXIT.interrupted };
  if (error.name === 'TimeoutError' || error.name === 'WaitTimeoutError') {
    return { message: said, exitCode: EXIT.timedOut };
  }

  if (error.name === 'KubeApiError' || (typeof error.status === 'number' && typeof error.reason === 'string')) {
    const status = Number(error.status ?? error.statusCode);
    const full = serverText(error);
    const text = WRAPPING.reduce((shorter, [words, instead]) => shorter.replace(words, instead), full);
    if (status === 404)
      return { message: withAdvice(text, isChosen && adviceFor(full, kubectl)), exitCode: EXIT.notFound };
    if (status === 401 && isChosen) {
      const advice =
        'the API server does not accept the credentials of this kubeconfig; choose another with --kubeconfig';
      return { message: withAdvice(text, advice), exitCode: EXIT.failed };
    }
    return { message: withAdvice(text, error.advice ?? (isChosen && adviceFor(full, kubectl))), exitCode: EXIT.failed };
  }

  const unreachable =
    error.name === 'KubeUnreachableError' ||
    causes(error).some((cause) => typeof cause.code === 'string' && UNREACHABLE_CODES.has(cause.code));
  const isForeign = causes(error).some((cause) => FOREIGN_CERTIFICATE.has(String(cause.code)));
  if (isForeign) {
    const [, server = 'the API server'] = / at (\S+): /.exec(said) ?? [];
    const advice = isChosen && 'choose the kubeconfig of this API server with --kubeconfig or --context';
    return {
      message: withAdvice(`the certificate of ${server} is not signed by the authority in this kubeconfig`, advice),
      exitCode: EXIT.failed,
    };
  }
  if (unreachable && isChosen) {
    const advice = 'start the garden with "coppice up", or choose another API server with --kubeconfig';
    const what = said.replace(/^[A-Z]+ \S+ at (\S+): /, '$1 does not answer: ');
    return { message: withAdvice(what, error.advice ?? advice), exitCode: EXIT.failed };
  }
  return { message: withAdvice(said, error.advice), exitCode: EXIT.failed };
}

// The request line and the status code are for logs. The server's message already names object and reason.
function serverText(error: ForeignError): string {
  const text = oneLine(error.message ?? '');
  if (typeof error.request !== 'string' || !text.startsWith(`${error.request}: `)) return text;
  const rest = text.slice(error.request.length + 2).replace(/^\d+( \w*)?: /, '');
  return /^\d+/.test(rest) ? `the API server refuses ${error.request} (${rest.trim()})` : rest;
}

function adviceFor(text: string, kubectl: string): string | undefined {
  if (/field not declared in schema|unknown field/.test(text)) {
    const [, kind = 'KIND'] = /Kind=(\w+)\)/.exec(text) ?? [];
    // The message may have several errors: the path must be that of this one.
    const [, parent = 'spec'] = /(?:^|[\s,[])\.(\S+)\.\w+: field not/.exec(text) ?? [];
    const path = [kind.toLowerCase(), parent.replace(/\[.*?\]/g, '')].join('.');
    return `find the right name with "${kubectl} explain ${path}"`;
  }
  // Only the garden's administrator has this name, and only a deleted binding takes its rights: operator/garden/control-plane/administrators.ts.
  if (text.includes('User "coppice:admin" cannot'))
    return 'if nobody took these rights away on purpose, "coppice up" gives them to the administrators of this garden again';
  const [, namespace] = /^namespaces "([^"]+)" not found$/.exec(text) ?? [];
  if (namespace !== undefined) return `make it with "${kubectl} create namespace ${namespace}"`;
  if (!/could not find the requested resource|page not found/i.test(text)) return undefined;
  return 'this API server does not have that kind; check that the CRDs of Coppice are installed ("coppice up" installs them)';
}

function withAdvice(message: string, advice: unknown): string {
  if (typeof advice !== 'string' || advice === '' || message.includes(advice)) return message;
  // Advice of conditions is a sentence; other advice follows a semicolon.
  const joint = /^[A-Z][a-z]/.test(advice) ? '. ' : '; ';
  return `${message.replace(/[.;]$/, '')}${joint}${oneLine(advice)}`;
}

/** Text on one line: white space and control characters become one space. */
export function oneLine(text: string): string {
  // A server's message must not control the terminal.
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}
