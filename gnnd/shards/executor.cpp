#include "gnnd/shards/executor.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace gnnd::shards {
namespace {

/// A pair is merged by building the graph of its union.
class HostExecutor final : public Executor {
  public:
    explicit HostExecutor(const BuildParams& params) : params_(params) {}

    BuildStats build(int, const VectorView& vectors, std::int32_t* ids, float* distances,
                     const Callbacks& callbacks) override {
        return build_into(vectors, params_, ids, distances, callbacks);
    }
    BuildStats merge(const Side& a, const Side& b, std::int32_t* ids, float* distances,
                     const Callbacks& callbacks) override {
        const std::size_t bytes = std::size_t(a.vectors.d) * size_of(a.vectors.dtype);
        std::vector<std::byte> both((a.vectors.n + b.vectors.n) * bytes);
        std::memcpy(both.data(), a.vectors.data, a.vectors.n * bytes);
        std::memcpy(both.data() + a.vectors.n * bytes, b.vectors.data, b.vectors.n * bytes);
        return build_into({both.data(), a.vectors.n + b.vectors.n, a.vectors.d, a.vectors.dtype, 0}, params_, ids,
                          distances, callbacks);
    }

  private:
    BuildParams params_;
};

}  // namespace

std::unique_ptr<Executor> make_host_executor(const BuildParams& params) {
    return std::make_unique<HostExecutor>(params);
}

}  // namespace gnnd::shards
