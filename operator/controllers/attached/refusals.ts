import { CoppiceError, errorText } from '../../api/errors.ts';
import { type AttachedConnection, failureText, LacksRight } from '../../clusters/attached-connection.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { type Connection, parseUntrustedKubeconfig } from '../../kube/kubeconfig.ts';
import type { Refusal } from './facts.ts';

/** Longest status.endpoint. */
const LONGEST_URL = 2048;

/** Parses a kubeconfig. @throws Refused when a field is harmful or invalid */
export function connectionIn(text: string): Connection {
  try {
    const connection = parseUntrustedKubeconfig(text);
    if (connection.server.length > LONGEST_URL) throw new Error('the kubeconfig is refused: its server is too long');
    const { username, password } = new URL(connection.server);
    // The server's URL appears in the cluster's status.
    if (username || password) throw new Error('the kubeconfig is refused: its server has a user or a password in it');
    return connection;
  } catch (error) {
    throw new Refused('KubeconfigRefused', error instanceof CoppiceError ? errorText(error) : failureText(error));
  }
}

export const NOT_READY = 'ERR_RETRYABLE_INFRA_DEPENDENCIES';

/** Refusal after the connection ended, until the next check. */
export const LINE_ENDED: Refusal = {
  reason: 'NotReachable',
  message: 'the connection to the API server has ended',
  code: NOT_READY,
};

export const notAnswering = ({ server, failure }: AttachedConnection): string =>
  `${server} does not answer${failure ? `: ${failure}` : ''}`;

export class Refused extends Error {
  readonly refusal: Refusal;

  constructor(reason: Refusal['reason'], message: string, code: Refusal['code'] = 'ERR_CONFIGURATION_PROBLEM') {
    super(message);
    this.refusal = { reason, message, code };
  }
}

/** Refusal for the error of a check. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refused) return error.refusal;
  if (error instanceof LacksRight)
    return { reason: 'Forbidden', message: error.message, code: 'ERR_INFRA_UNAUTHORIZED' };
  if (error instanceof KubeApiError && error.isUnauthorized)
    return { reason: 'Unauthorized', message: failureText(error), code: 'ERR_INFRA_UNAUTHENTICATED' };
  if (error instanceof CoppiceError && !error.code.includes('INFRA'))
    return { reason: 'KubeconfigRefused', message: errorText(error), code: error.code };
  return { reason: 'NotReachable', message: failureText(error), code: NOT_READY };
}
