import type { KubeClient } from '../../../operator/kube/client.ts';
import { DEPLOYMENTS, decodeSecret, type KubeObject, SECRETS, type Secret } from '../../../operator/kube/resources.ts';

/** What karmada-agent is started with in a member, as its Deployment and the Secret that is mounted say. */
export interface AgentRun {
  readonly image: string;
  /** Of its command, without the program. */
  readonly args: readonly string[];
  /** Files of the folder that is mounted. */
  readonly files: Readonly<Record<string, string>>;
  readonly mountPath: string;
  /** Who it is in the member. */
  readonly account: { readonly namespace: string; readonly name: string };
}

type Deployment = KubeObject & {
  spec: {
    template: {
      spec: {
        serviceAccountName: string;
        containers: { image: string; command: string[]; volumeMounts: { mountPath: string }[] }[];
        volumes: { secret: { secretName: string } }[];
      };
    };
  };
};

/** undefined: there is no agent in the member, or nothing yet that it could start with. */
export async function agentRun(member: KubeClient): Promise<AgentRun | undefined> {
  const { items } = await member.list(DEPLOYMENTS, { labelSelector: 'app=karmada-agent' });
  const [deployment] = items as Deployment[];
  if (!deployment) return undefined;
  const { containers, volumes, serviceAccountName } = deployment.spec.template.spec;
  const { image, command, volumeMounts } = containers[0]!;
  const { secretName } = volumes[0]!.secret;
  const secret = await member.getOrUndefined<Secret>(SECRETS, secretName, deployment.metadata.namespace);
  if (!secret) return undefined;
  const account = { namespace: deployment.metadata.namespace ?? '', name: serviceAccountName };
  return {
    image,
    account,
    args: command.slice(1),
    files: decodeSecret(secret.data),
    mountPath: volumeMounts[0]!.mountPath,
  };
}

/** The kubeconfig of the agent with its token in it: as good as it is to the agent at this moment. */
export const accessOf = ({ files }: AgentRun): string =>
  files.kubeconfig!.replace(/tokenFile: .*/, `token: ${files.token}`);
