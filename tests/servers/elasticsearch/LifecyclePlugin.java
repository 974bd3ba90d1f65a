// Stands in for the module ILM, which is not in the registry: policies are read, checked and written by Elasticsearch's own
// classes (x-pack-core) and kept in memory; which index has which is read from the index itself. No policy is ever run.
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.elasticsearch.ResourceNotFoundException;
import org.elasticsearch.action.support.IndicesOptions;
import org.elasticsearch.action.support.master.AcknowledgedResponse;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.cluster.metadata.IndexMetadata;
import org.elasticsearch.cluster.metadata.ItemUsage;
import org.elasticsearch.cluster.node.DiscoveryNodes;
import org.elasticsearch.common.Strings;
import org.elasticsearch.common.settings.Setting;
import org.elasticsearch.core.CheckedFunction;
import org.elasticsearch.core.TimeValue;
import org.elasticsearch.features.NodeFeature;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.action.RestChunkedToXContentListener;
import org.elasticsearch.rest.action.RestToXContentListener;
import org.elasticsearch.xcontent.NamedXContentRegistry;
import org.elasticsearch.xcontent.ParseField;
import org.elasticsearch.xcontent.XContentParser;
import org.elasticsearch.xpack.core.ilm.*;
import org.elasticsearch.xpack.core.ilm.action.GetLifecycleAction;
import org.elasticsearch.xpack.core.ilm.action.PutLifecycleRequest;

public class LifecyclePlugin extends Plugin implements ActionPlugin {
    private final Map<String, LifecyclePolicyMetadata> policies = new ConcurrentSkipListMap<>();
    private PluginServices services;

    @Override
    public Collection<?> createComponents(PluginServices given) {
        services = given;
        return List.of();
    }

    @Override
    public List<Setting<?>> getSettings() {
        return List.of(LifecycleSettings.LIFECYCLE_NAME_SETTING, LifecycleSettings.LIFECYCLE_INDEXING_COMPLETE_SETTING);
    }

    @Override
    public List<NamedXContentRegistry.Entry> getNamedXContent() {
        return List.of(
            new NamedXContentRegistry.Entry(LifecycleType.class, new ParseField(TimeseriesLifecycleType.TYPE), p -> TimeseriesLifecycleType.INSTANCE),
            action(RolloverAction.NAME, RolloverAction::parse),
            action(ShrinkAction.NAME, ShrinkAction::parse),
            action(ForceMergeAction.NAME, ForceMergeAction::parse),
            action(ReadOnlyAction.NAME, ReadOnlyAction::parse),
            action(SetPriorityAction.NAME, SetPriorityAction::parse),
            action(AllocateAction.NAME, AllocateAction::parse),
            action(MigrateAction.NAME, MigrateAction::parse),
            action(SearchableSnapshotAction.NAME, SearchableSnapshotAction::parse),
            action(WaitForSnapshotAction.NAME, WaitForSnapshotAction::parse),
            action(DeleteAction.NAME, DeleteAction::parse));
    }

    private static NamedXContentRegistry.Entry action(String name, CheckedFunction<XContentParser, LifecycleAction, IOException> parse) {
        return new NamedXContentRegistry.Entry(LifecycleAction.class, new ParseField(name), parse);
    }

    @Override
    public Collection<RestHandler> getRestHandlers(
        RestHandlersServices given, Supplier<DiscoveryNodes> nodes, Predicate<NodeFeature> features) {
        return List.of(new Policy(), new Explain());
    }

    class Policy extends BaseRestHandler {
        @Override
        public String getName() {
            return "policy";
        }

        @Override
        public List<Route> routes() {
            return List.of(
                new Route(RestRequest.Method.GET, "/_ilm/policy/{name}"),
                new Route(RestRequest.Method.PUT, "/_ilm/policy/{name}"),
                new Route(RestRequest.Method.DELETE, "/_ilm/policy/{name}"));
        }

        @Override
        protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) throws IOException {
            String name = request.param("name");
            if (request.method() == RestRequest.Method.PUT) {
                put(name, request);
                return channel -> new RestToXContentListener<>(channel).onResponse(AcknowledgedResponse.TRUE);
            }
            LifecyclePolicyMetadata found =
                request.method() == RestRequest.Method.GET ? policies.get(name) : policies.remove(name);
            if (found == null) {
                throw new ResourceNotFoundException("Lifecycle policy not found: {}", name);
            }
            if (request.method() == RestRequest.Method.DELETE) {
                return channel -> new RestToXContentListener<>(channel).onResponse(AcknowledgedResponse.TRUE);
            }
            var item = new GetLifecycleAction.LifecyclePolicyResponseItem(
                found.getPolicy(), found.getVersion(), found.getModifiedDateString(), new ItemUsage(List.of(), List.of(), List.of()));
            var answer = new GetLifecycleAction.Response(List.of(item));
            return channel -> new RestChunkedToXContentListener<GetLifecycleAction.Response>(channel).onResponse(answer);
        }

        private void put(String name, RestRequest request) throws IOException {
            PutLifecycleRequest put;
            try (XContentParser parser = request.contentParser()) {
                put = PutLifecycleRequest.parseRequest(new PutLifecycleRequest.Factory() {
                    @Override
                    public PutLifecycleRequest create(LifecyclePolicy policy) {
                        return new PutLifecycleRequest(TimeValue.ZERO, TimeValue.ZERO, policy);
                    }

                    @Override
                    public String getPolicyName() {
                        return name;
                    }
                }, parser);
            }
            put.getPolicy().validate();
            LifecyclePolicy.validatePolicyName(name);
            policies.compute(name, (key, before) -> new LifecyclePolicyMetadata(
                put.getPolicy(), Map.of(), before == null ? 1 : before.getVersion() + 1, System.currentTimeMillis()));
        }
    }

    class Explain extends BaseRestHandler {
        @Override
        public String getName() {
            return "explain";
        }

        @Override
        public List<Route> routes() {
            return List.of(new Route(RestRequest.Method.GET, "/{index}/_ilm/explain"));
        }

        @Override
        protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) {
            var state = services.clusterService().state();
            Map<String, IndexLifecycleExplainResponse> told = new TreeMap<>();
            for (String name : services.indexNameExpressionResolver().concreteIndexNames(
                state, IndicesOptions.strictExpandOpen(), true, Strings.splitStringByCommaToArray(request.param("index")))) {
                told.put(name, explain(state.metadata().getProject().index(name)));
            }
            return channel -> new RestToXContentListener<ExplainLifecycleResponse>(channel).onResponse(new ExplainLifecycleResponse(told));
        }

        private IndexLifecycleExplainResponse explain(IndexMetadata index) {
            String name = index.getIndex().getName();
            String policy = index.getLifecyclePolicyName();
            if (policy == null) {
                return IndexLifecycleExplainResponse.newUnmanagedIndexResponse(name);
            }
            // As the module has it: an index whose policy is not there is in the step of errors.
            boolean there = policies.containsKey(policy);
            return IndexLifecycleExplainResponse.newManagedIndexResponse(
                name, index.getCreationDate(), policy, null, "new", "complete",
                there ? "complete" : ErrorStep.NAME, null, null, null, null, null, null, null, null, null, null, null, null, false, null);
        }
    }
}
