#include "gnnd/shards/executor.h"

#include "gnnd/merge.h"

#ifdef GNND_WITH_CUDA
#include "gnnd/cuda/executor.h"
#endif

namespace gnnd::shards {
namespace {

class HostExecutor final : public Executor {
  public:
    explicit HostExecutor(const BuildParams& params) : params_(params) {}

    BuildStats build(int, const VectorView& vectors, std::int32_t* ids, float* distances,
                     const Callbacks& callbacks) override {
        return build_into(vectors, params_, ids, distances, callbacks);
    }
    BuildStats merge(const Side& a, const Side& b, std::int32_t* ids, float* distances, const Callbacks& callbacks,
                     std::function<void()>& fetch) override {
        fetch = [] {};
        return merge_into(a.vectors, a.local, b.vectors, b.local, params_, ids, distances, callbacks);
    }
    void prepare(const Side&, const std::function<bool(int)>&) override {}

  private:
    BuildParams params_;
};

}  // namespace

std::unique_ptr<Executor> make_executor(const BuildParams& params, [[maybe_unused]] const TaskSize& size) {
#ifdef GNND_WITH_CUDA
    if (params.device.kind == Device::Kind::cuda)
        if (auto executor = cuda::make_executor(params, size)) return executor;
#endif
    return std::make_unique<HostExecutor>(params);
}

}  // namespace gnnd::shards
