import { requestToken } from '../../../operator/clusters/service-account-token.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { decodeSecret, SECRETS, SERVICEACCOUNTS, type Secret } from '../../../operator/kube/resources.ts';
import { StandIn } from './stand-in.ts';

const ACCOUNT = 'kubernetes.io/service-account.name';
const HOUR = 3600;

/** Fills Secrets that ask for the token of a ServiceAccount, as the controller manager does, which a bare API server has not. */
export class TokenController extends StandIn {
  constructor(client: KubeClient) {
    super(client, [SECRETS, SERVICEACCOUNTS]);
  }

  protected override async reconcile(): Promise<void> {
    for (const secret of await this.list<Secret>(SECRETS)) {
      const { name, namespace = '', annotations } = secret.metadata;
      const account = annotations?.[ACCOUNT];
      if (secret.type !== 'kubernetes.io/service-account-token' || !account || decodeSecret(secret.data).token)
        continue;
      const { token } = await requestToken(
        this.client,
        { name: account, namespace },
        HOUR,
        AbortSignal.timeout(10_000),
      );
      const data = { token: Buffer.from(token).toString('base64') };
      await this.client.mergePatch(SECRETS, name, namespace, { data });
    }
  }
}
