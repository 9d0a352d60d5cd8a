import { conditionIsTrue, type Pod } from '../../../kube/resources.ts';
import { KONNECTIVITY_AGENT_APP } from '../../../shoot/konnectivity-agent.ts';
import { allNodesReady, say } from '../../conditions.ts';
import { codesOfRefusal, refusalByAdmission } from '../../problematic-webhook.ts';
import { startupTaintsLine } from '../../startup-taints.ts';
import { because } from '../tasks/blocked-inside.ts';
import type { RunningFacts } from './facts.ts';

/** Reason of EveryNodeReady while Nodes without machines exist, which the next reconcile deletes. */
export const NODES_LEAVING = 'NodesLeaving';

/** Condition EveryNodeReady. @param rolling whether a roll is in progress, during which surplus machines exist */
export function nodesCondition(
  facts: Pick<RunningFacts, 'usable' | 'pools' | 'blocked'> & {
    inside: Pick<NonNullable<RunningFacts['inside']>, 'nodes'> | undefined;
  },
  desired: number,
  current: number,
  ready: number,
  rolling = false,
) {
  if (!facts.inside) {
    // Without a connection, the last known text stays as Unknown: an interruption of the seed is no failure of nodes.
    return desired === 0
      ? say('EveryNodeReady', true, 'NoNodes', 'the spec asks for no nodes')
      : say(
          'EveryNodeReady',
          facts.usable ? 'Unknown' : false,
          'NotObserved',
          'nodes are unknown until the API server answers',
        );
  }
  if (desired === 0 && current === 0) return say('EveryNodeReady', true, 'NoNodes', 'the spec asks for no nodes');
  const blocked = facts.blocked?.get('nodes');
  const starting = startupTaintsLine(facts.inside.nodes, facts.pools);
  const meanwhile = starting ? `; ${starting}` : '';
  if (ready === desired && current === desired) return allNodesReady(desired, meanwhile);
  if (rolling && ready >= desired) return allNodesReady(desired, `, while machines are replaced${meanwhile}`);
  if (current > desired && !rolling)
    return say('EveryNodeReady', false, 'ScalingIn', `${current - desired} of ${current} nodes are being removed`);
  return say(
    'EveryNodeReady',
    false,
    current < desired ? 'ScalingOut' : 'NotReady',
    `${ready} of ${desired} nodes are Ready${because(blocked)}`,
    codesOfRefusal(blocked ?? ''),
  );
}

/** Condition Draining; undefined: no drain. @param lines one per node */
export function drainingCondition(lines: readonly string[]) {
  const message = lines.join('; ');
  return lines.length > 0 ? say('Draining', true, 'ScaleIn', message, codesOfRefusal(message)) : undefined;
}

/** Condition SystemComponentsHealthy. @param desired desired nodes */
export function systemCondition(facts: RunningFacts, desired: number) {
  if (desired === 0) return say('SystemComponentsHealthy', true, 'NoNodes', 'without nodes no system components run');
  if (!facts.inside)
    return say(
      'SystemComponentsHealthy',
      facts.usable ? 'Unknown' : false,
      'NotObserved',
      'unknown until the API server answers',
    );
  if (facts.systemRefused) {
    const { reason, message } = refusalByAdmission(facts.systemRefused, 'what the operator applies');
    return say('SystemComponentsHealthy', false, reason, message, codesOfRefusal(facts.systemRefused));
  }
  const { pods } = facts.inside;
  const podsOf = (app: string) =>
    pods.filter((pod) => pod.metadata.labels?.['k8s-app'] === app && !pod.metadata.deletionTimestamp);
  const there = new Set(facts.inside.nodes.map(({ metadata }) => metadata.name));
  // Pods of deleted nodes do not count: if a webhook blocks their deletion they stay Ready.
  const isReady = (pod: Pod) =>
    conditionIsTrue(pod, 'Ready') && (pod.spec?.nodeName === undefined || there.has(pod.spec.nodeName));
  const dns = podsOf('kube-dns');
  const agents = podsOf(KONNECTIVITY_AGENT_APP);
  if (!dns.some(isReady)) {
    const starting = startupTaintsLine(facts.inside.nodes, facts.pools);
    const blocked = facts.blocked?.get('system');
    const why = `cluster DNS is not ready yet (${dns.length} pods)${because(starting ?? blocked)}`;
    const refused = blocked ? refusalByAdmission(blocked, 'pods').reason : 'NotReady';
    const reason = starting ? 'StartupTaints' : refused;
    return say('SystemComponentsHealthy', false, reason, why, codesOfRefusal(why));
  }
  if (facts.tunnel && !agents.some(isReady))
    return say(
      'SystemComponentsHealthy',
      false,
      'TunnelDown',
      `no tunnel agent is connected to an API server (${agents.length} pods). ` +
        'kubectl logs, exec and port-forward, webhooks and aggregated APIs fail',
    );
  if (facts.nothingRuns)
    return say(
      'SystemComponentsHealthy',
      true,
      'Simulated',
      'nodes are simulated and run no pods: there is none that kubectl logs, exec and proxy, webhooks or aggregated APIs could reach',
    );
  const what = facts.tunnel ? 'cluster DNS serves, the tunnel from the API server is open' : 'cluster DNS serves';
  return say('SystemComponentsHealthy', true, 'Healthy', what);
}
