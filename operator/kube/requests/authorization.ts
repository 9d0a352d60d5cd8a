import { readFile } from 'node:fs/promises';
import { KubeUnreachableError } from '../errors.ts';
import type { Connection, KubeCredentials } from '../kubeconfig.ts';

const TOKEN_FILE_MS = 60_000;

/** Credentials of requests to one API server, besides the client certificate. */
export class Authorization {
  readonly #connection: Pick<Connection, 'token' | 'tokenFile' | 'credentials'>;
  readonly #onCertificate: (identity: Pick<KubeCredentials, 'cert' | 'key'>) => Promise<void>;
  #plugin: Promise<void> | undefined;
  #token: { header: string; readAt: number } | undefined;

  /** @param onCertificate called when a credential plugin returned a certificate: later connections must use it */
  constructor(
    connection: Pick<Connection, 'token' | 'tokenFile' | 'credentials'>,
    onCertificate: (identity: Pick<KubeCredentials, 'cert' | 'key'>) => Promise<void>,
  ) {
    this.#connection = connection;
    this.#onCertificate = onCertificate;
    const { token } = connection;
    if (token) this.#token = { header: `Bearer ${token}`, readAt: Number.POSITIVE_INFINITY };
  }

  /**
   * Header `authorization`; undefined: none.
   * @param what the request, for the error
   * @throws KubeUnreachableError when the credential plugin fails
   */
  async header(what: string): Promise<string | undefined> {
    const { credentials, tokenFile } = this.#connection;
    if (credentials) {
      this.#plugin ??= this.#askPlugin(credentials);
      try {
        await this.#plugin;
      } catch (error) {
        this.#plugin = undefined;
        throw new KubeUnreachableError(`${what}: credentials`, error);
      }
    } else if (tokenFile && performance.now() - (this.#token?.readAt ?? Number.NEGATIVE_INFINITY) > TOKEN_FILE_MS) {
      const token = (await readFile(tokenFile, 'utf8')).trim();
      this.#token = { header: `Bearer ${token}`, readAt: performance.now() };
    }
    return this.#token?.header;
  }

  /**
   * Drops credentials that the server refused, so that the next request gets new ones. Returns false when there are no
   * others.
   */
  forget(): boolean {
    if (this.#connection.credentials) {
      this.#plugin = undefined;
      return true;
    }
    if (this.#connection.tokenFile) {
      this.#token = undefined;
      return true;
    }
    return false;
  }

  async #askPlugin(credentials: NonNullable<Connection['credentials']>): Promise<void> {
    const { token, cert, key } = await credentials();
    this.#token = token ? { header: `Bearer ${token}`, readAt: Number.POSITIVE_INFINITY } : undefined;
    if (cert && key) await this.#onCertificate({ cert, key });
  }
}
