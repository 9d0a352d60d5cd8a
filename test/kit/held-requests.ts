import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { KubeClient } from '../../operator/kube/client.ts';
import type { Resource } from '../../operator/kube/resources.ts';
import { createCA, issue } from '../../operator/pki/certificates.ts';
import { VALIDATING_WEBHOOKS, validatingWebhook } from './workload.ts';

type Operation = 'CREATE' | 'DELETE';

/** Lets nobody make or delete certain objects before the test says so: what was decided is then written down, and not done. */
export class HeldRequests {
  readonly #client: KubeClient;
  readonly #server: Server;
  readonly #name: string;
  readonly #held = new Map<Operation, { readonly seen: PromiseWithResolvers<void>; readonly over: Promise<void> }>();

  private constructor(client: KubeClient, server: Server, name: string) {
    this.#client = client;
    this.#server = server;
    this.#name = name;
  }

  /** Of objects with these labels. What is only tried (a dry run) is never held. */
  static async of(client: KubeClient, { group, plural }: Resource, matchLabels: Record<string, string>) {
    const ca = await createCA({ commonName: 'held requests', days: 1 });
    const request = { commonName: 'held requests', ipAddresses: ['127.0.0.1'], usages: ['server' as const], days: 1 };
    const server = createServer(await issue(ca, request));
    const held = new HeldRequests(client, server, `held-${plural}`);
    server.on('request', (incoming, response) => void held.#answer(incoming, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const rule = { apiGroups: [group], resources: [plural], operations: ['CREATE', 'DELETE'] };
    const body = validatingWebhook(held.#name, { name: 'unused', port: 443 }, matchLabels, ca.cert, rule);
    const [hook] = body.webhooks as { clientConfig: { caBundle: string } }[];
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const clientConfig = { url, caBundle: hook!.clientConfig.caBundle };
    const webhooks = [{ ...hook, clientConfig, timeoutSeconds: 30, failurePolicy: 'Ignore' }];
    await client.request('POST', VALIDATING_WEBHOOKS, { body: { ...body, webhooks } });
    return held;
  }

  /**
   * From now on, until `release`.
   * @returns `seen` resolves when somebody asks for it
   */
  hold(operation: Operation): { readonly seen: Promise<void>; release(): void } {
    const [seen, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this.#held.set(operation, { seen, over: over.promise });
    const release = () => {
      this.#held.delete(operation);
      over.resolve();
    };
    return { seen: seen.promise, release };
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { uid, operation, dryRun } = ((await json(incoming)) as { request: Asked }).request;
    const held = dryRun ? undefined : this.#held.get(operation);
    held?.seen.resolve();
    await held?.over;
    const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed: true } };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(review));
  }

  async end(): Promise<void> {
    await this.#client.request('DELETE', `${VALIDATING_WEBHOOKS}/${this.#name}`);
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

interface Asked {
  readonly uid: string;
  readonly operation: Operation;
  readonly dryRun?: boolean;
}
