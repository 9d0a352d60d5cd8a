import { readFile } from 'node:fs/promises';
import { KubeUnreachableError } from '../errors.ts';
import type { Connection, Credentials } from '../kubeconfig.ts';

const TOKEN_FILE_MS = 60_000;

/** How requests to one API server prove who sends them, besides the certificate of the connection. */
export class Authorization {
  readonly #connection: Pick<Connection, 'token' | 'tokenFile' | 'credentials'>;
  readonly #onCertificate: (identity: Pick<Credentials, 'cert' | 'key'>) => Promise<void>;
  #plugin: Promise<void> | undefined;
  #token: { header: string; readAt: number } | undefined;

  /** @param onCertificate called when a credential plugin has given a certificate: connections are to be made with it from then on */
  constructor(
    connection: Pick<Connection, 'token' | 'tokenFile' | 'credentials'>,
    onCertificate: (identity: Pick<Credentials, 'cert' | 'key'>) => Promise<void>,
  ) {
    this.#connection = connection;
    this.#onCertificate = onCertificate;
    const { token } = connection;
    if (token) this.#token = { header: `Bearer ${token}`, readAt: Number.POSITIVE_INFINITY };
  }

  /**
   * The header `authorization`; undefined: the request has none.
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

  /** The server refused them: the next request gets new ones. False when there are no others to be had. */
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
