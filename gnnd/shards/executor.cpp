#include "gnnd/shards/executor.h"

#include "gnnd/merge.h"

namespace gnnd::shards {
namespace {

class HostExecutor final : public Executor {
  public:
    explicit HostExecutor(const BuildParams& params) : params_(params) {}

    BuildStats build(int, const VectorView& vectors, std::int32_t* ids, float* distances,
                     const Callbacks& callbacks) override {
        return build_into(vectors, params_, ids, distances, callbacks);
    }
    BuildStats merge(const Side& a, const Side& b, std::int32_t* ids, float* distances,
                     const Callbacks& callbacks) override {
        return merge_into(a.vectors, a.local, b.vectors, b.local, params_, ids, distances, callbacks);
    }

  private:
    BuildParams params_;
};

}  // namespace

std::unique_ptr<Executor> make_host_executor(const BuildParams& params) {
    return std::make_unique<HostExecutor>(params);
}

}  // namespace gnnd::shards
