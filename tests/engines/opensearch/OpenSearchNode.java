import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.cn.smart.SmartChineseAnalyzer;
import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.IndexSettings;
import org.opensearch.index.analysis.AbstractIndexAnalyzerProvider;
import org.opensearch.index.analysis.AnalyzerProvider;
import org.opensearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.AnalysisPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.PluginInfo;

/**
 * A real OpenSearch server in one JVM, for tests, from the jars that pom.xml names. Compiles against 2.19 and 3.x.
 *
 * <pre>java [JVM flags] -cp 'lib/*' OpenSearchNode.java path.home=DIR [setting=value ...]</pre>
 *
 * Each argument is an OpenSearch setting and overrides a default below. DIR/logs/http.ports holds the HTTP addresses
 * once the node listens. It stops on SIGTERM; whoever starts it sees to it that it does not outlive its parent.
 */
public final class OpenSearchNode extends Node {

    /** What the distribution keeps in modules/, here on the class path. 3.x renamed XPlugin to XModulePlugin. */
    private static final List<String> MODULES = List.of(
        "org.opensearch.transport.Netty4", // the only HTTP and transport layer: required
        "org.opensearch.analysis.common.CommonAnalysis", // english, cjk, ngram, synonym, ...
        "org.opensearch.painless.Painless", // scripts, needed by update_by_query with a script
        "org.opensearch.index.reindex.Reindex", // _reindex, _update_by_query, _delete_by_query
        "org.opensearch.index.mapper.MapperExtras", // rank_feature, search_as_you_type, scaled_float
        "org.opensearch.join.ParentJoin"
    );

    public static void main(String[] args) throws Exception {
        var settings = Settings.builder()
            .put("cluster.name", "test")
            .put("network.host", "127.0.0.1")
            .put("http.port", "0") // any free port, written to logs/http.ports
            .put("transport.port", "0")
            .put("node.portsfile", true)
            .put("discovery.type", "single-node")
            .put("cluster.routing.allocation.disk.threshold_enabled", false); // else a full disk makes indices read-only
        for (var arg : args) {
            var pair = arg.split("=", 2);
            if (pair[0].equals("cluster.initial_cluster_manager_nodes") || pair[0].equals("discovery.seed_hosts")) {
                settings.remove("discovery.type"); // these two mean a cluster
            }
            settings.put(pair[0], pair[1]);
        }
        Files.createDirectories(Path.of(settings.get("path.home"), "logs")); // the ports files need it
        var node = new OpenSearchNode(
            InternalSettingsPreparer.prepareEnvironment(settings.build(), Map.of(), null, () -> "node"), plugins());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node)));
        node.start();
        new CountDownLatch(1).await(); // until SIGTERM, which runs the shutdown hook
    }

    private static void close(Node node) {
        try {
            node.close();
        } catch (java.io.IOException e) {
            e.printStackTrace();
        }
    }

    /** 2.19 takes plugin classes, 3.x a PluginInfo each, in constructors that erase to the same one. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private OpenSearchNode(Environment environment, List<Class<? extends Plugin>> plugins) {
        super(environment, (Collection) (isVersion2() ? plugins : plugins.stream().map(OpenSearchNode::info).toList()), true);
    }

    private static boolean isVersion2() {
        return Version.CURRENT.major < 3;
    }

    private static PluginInfo info(Class<? extends Plugin> type) {
        var name = type.getName();
        return new PluginInfo(name, "class path", "NA", Version.CURRENT, "17", name, null, List.of(), false);
    }

    private static List<Class<? extends Plugin>> plugins() throws ClassNotFoundException {
        var suffix = isVersion2() ? "Plugin" : "ModulePlugin";
        var found = new ArrayList<Class<? extends Plugin>>();
        for (var name : MODULES) {
            found.add(Class.forName(name + suffix).asSubclass(Plugin.class));
        }
        found.add(Smartcn.class);
        return found;
    }

    /** The official analysis-smartcn plugin is not on Maven Central; this offers its analyzer under the same name. */
    public static final class Smartcn extends Plugin implements AnalysisPlugin {
        @Override
        public Map<String, AnalysisProvider<AnalyzerProvider<? extends Analyzer>>> getAnalyzers() {
            return Map.of("smartcn", (index, environment, name, settings) -> new Provider(index, name, settings));
        }
    }

    private static final class Provider extends AbstractIndexAnalyzerProvider<SmartChineseAnalyzer> {
        private final SmartChineseAnalyzer analyzer = new SmartChineseAnalyzer();

        Provider(IndexSettings index, String name, Settings settings) {
            super(index, name, settings);
        }

        @Override
        public SmartChineseAnalyzer get() {
            return analyzer;
        }
    }
}
